//! JSON documents: the state of a trainer with its `log_history`, a list of rows, or one object
//! that sums a run up.

use std::io::{BufRead, Read};

use crate::runs::formats::cells::Cells;
use crate::runs::formats::json_lines;
use crate::runs::formats::{Warnings, unreadable};
use crate::runs::recorder::Recorder;
use shakedown_core::value::error::Error;

/// A longer document that sums a run up is none.
const LONGEST_SUMMARY: u64 = 64 << 20;
/// A longer entry of a history is no row of metrics.
const LONGEST_ENTRY: usize = 16 << 20;

/// Reads an object that sums a run up as one row; whether it was one.
pub(super) fn summary(source: &mut dyn BufRead, to: &mut Recorder) -> Result<bool, Error> {
    let mut text = Vec::new();
    let read = source.take(LONGEST_SUMMARY).read_to_end(&mut text);
    read.map_err(|error| unreadable(&error))?;
    let text = String::from_utf8_lossy(&text);
    let mut cells = Cells::default();
    let is_object = json_lines::row(text.trim_start_matches('\u{feff}'), &mut cells).is_some();
    if is_object {
        to.row(1, cells.iter());
    }
    Ok(is_object)
}

/// Reads the entries of a list, or of the list `log_history` of an object, as rows; whether nothing
/// follows after the document.
pub(super) fn history(
    source: &mut dyn BufRead,
    to: &mut Recorder,
    warnings: &mut Warnings,
) -> Result<bool, Error> {
    let mut scanner = Scanner { line: 1, ..Scanner::default() };
    let mut cells = Cells::default();
    let (mut broken, mut first_broken) = (0, 0);
    loop {
        let bytes = source.fill_buf().map_err(|error| unreadable(&error))?;
        if bytes.is_empty() {
            break;
        }
        for byte in bytes {
            let Some(line) = scanner.take(*byte) else { continue };
            let entry = String::from_utf8_lossy(&scanner.entry);
            if json_lines::row(&entry, &mut cells).is_some() {
                to.row(line, cells.iter());
            } else {
                broken += 1;
                first_broken = if broken == 1 { line } else { first_broken };
            }
        }
        let read = bytes.len();
        source.consume(read);
    }
    to.declare(scanner.max_steps);
    warnings.cut(scanner.depth > 0);
    warnings.broken(broken, first_broken, "JSON objects");
    Ok(!scanner.goes_on)
}

/// Finds the entries in the bytes of a document.
#[derive(Default)]
struct Scanner {
    line: usize,
    depth: usize,
    has_ended: bool,
    /// Whether something follows after the document.
    goes_on: bool,
    in_text: bool,
    after_backslash: bool,
    /// The last text at the top of the document: the key of what follows.
    key: Vec<u8>,
    /// How deep the braces of an entry are, inside the list of them.
    entries_at: Option<usize>,
    /// The entry that is being read, and the line where it begins.
    entry: Vec<u8>,
    entry_line: Option<usize>,
    /// The number behind the key of the steps that there are to be; 0 where there is none.
    max_steps: f64,
}

impl Scanner {
    /// Takes a byte; where it ends an entry, the line where that begins.
    fn take(&mut self, byte: u8) -> Option<usize> {
        self.line += usize::from(byte == b'\n');
        self.goes_on |= self.has_ended && !byte.is_ascii_whitespace() && byte != 0;
        if self.begins_entry(byte) {
            self.entry.clear();
            self.entry_line = Some(self.line);
        }
        if self.entry_line.is_some() && self.entry.len() < LONGEST_ENTRY {
            self.entry.push(byte);
        }
        if self.in_text {
            self.text(byte);
            return None;
        }
        match byte {
            b'0'..=b'9' if self.depth == 1 && self.key == b"max_steps" => {
                self.max_steps = 10.0 * self.max_steps + f64::from(byte - b'0');
            }
            b'"' => {
                self.in_text = true;
                self.key.clear();
            }
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => return self.close(),
            _ => {}
        }
        None
    }

    fn begins_entry(&self, byte: u8) -> bool {
        byte == b'{' && !self.in_text && self.entries_at == Some(self.depth + 1)
    }

    fn text(&mut self, byte: u8) {
        match byte {
            _ if std::mem::take(&mut self.after_backslash) => {}
            b'\\' => self.after_backslash = true,
            b'"' => self.in_text = false,
            _ if self.depth == 1 && self.key.len() < 32 => self.key.push(byte),
            _ => {}
        }
    }

    fn open(&mut self, byte: u8) {
        let is_history = self.depth == 0 || (self.depth == 1 && self.key == b"log_history");
        if byte == b'[' && is_history && self.entries_at.is_none() {
            self.entries_at = Some(self.depth + 2);
        }
        self.depth += 1;
    }

    fn close(&mut self) -> Option<usize> {
        let ends_entry = self.entries_at == Some(self.depth);
        self.depth = self.depth.saturating_sub(1);
        self.has_ended |= self.depth == 0;
        if self.entries_at.is_some_and(|at| self.depth + 2 == at) {
            self.entries_at = None;
        }
        self.entry_line.take_if(|_| ends_entry)
    }
}
