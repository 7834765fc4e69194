//! Text as lines: without byte-order mark and colours, ended by `\n`, `\r\n` or `\r` (progress bars
//! write `\r`), each of bounded length.

use std::borrow::Cow;
use std::io::{BufRead, Error as IoError};

use memchr::{memchr, memchr2};

/// A longer line is no row of metrics: it is passed over, so that memory stays bounded.
const LONGEST_LINE: usize = 16 << 20;

/// The lines of a text.
pub(super) struct Lines<'a> {
    source: &'a mut dyn BufRead,
    buffer: Vec<u8>,
    /// How many `\n` were read: people and editors count lines by them.
    newlines: usize,
    after_return: bool,
    began: bool,
    /// How many lines were too long.
    pub(super) too_long: usize,
}

/// One of them.
pub(super) struct Line<'a> {
    /// Its number, counted from 1.
    pub(super) number: usize,
    /// What it says.
    pub(super) text: Cow<'a, str>,
    /// Whether an end of line follows; the last line of a log that is still written has none.
    pub(super) is_ended: bool,
}

/// What ended a piece of the buffer.
enum End {
    Newline,
    Return,
    File,
}

impl<'a> Lines<'a> {
    pub(super) fn new(source: &'a mut dyn BufRead) -> Lines<'a> {
        Lines {
            source,
            buffer: Vec::new(),
            newlines: 0,
            after_return: false,
            began: false,
            too_long: 0,
        }
    }

    /// The next line that is not blank.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, IoError> {
        loop {
            self.buffer.clear();
            self.end_return()?;
            let number = self.newlines + 1;
            let end = self.fill()?;
            let is_ended = !matches!(end, End::File);
            if !is_ended && self.buffer.is_empty() {
                return Ok(None);
            }
            if self.buffer.len() > LONGEST_LINE {
                self.too_long += 1;
            } else if self.buffer.iter().any(|byte| !byte.is_ascii_whitespace()) {
                self.tidy();
                return Ok(Some(Line {
                    number,
                    text: String::from_utf8_lossy(&self.buffer),
                    is_ended,
                }));
            }
        }
    }

    /// Passes the second half of `\r\n`.
    fn end_return(&mut self) -> Result<(), IoError> {
        if std::mem::take(&mut self.after_return) && self.source.fill_buf()?.starts_with(b"\n") {
            self.newlines += 1;
            self.source.consume(1);
        }
        Ok(())
    }

    /// Reads up to the end of a line.
    fn fill(&mut self) -> Result<End, IoError> {
        loop {
            let bytes = self.source.fill_buf()?;
            if bytes.is_empty() {
                return Ok(End::File);
            }
            let found = memchr2(b'\n', b'\r', bytes);
            let upto = found.unwrap_or(bytes.len());
            let room = (LONGEST_LINE + 1).saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&bytes[..upto.min(room)]);
            let end = found.map(|at| bytes[at]);
            self.source.consume(upto + usize::from(end.is_some()));
            match end {
                Some(b'\n') => {
                    self.newlines += 1;
                    return Ok(End::Newline);
                }
                Some(_) => {
                    self.after_return = true;
                    return Ok(End::Return);
                }
                None => {}
            }
        }
    }

    /// Drops what only a screen or an editor needs.
    fn tidy(&mut self) {
        if !std::mem::replace(&mut self.began, true) && self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.buffer.drain(..3);
        }
        if memchr(0x1b, &self.buffer).is_some() {
            self.buffer = without_escapes(&self.buffer);
        }
    }
}

/// A line without the escape sequences of a terminal.
fn without_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr(0x1b, rest) {
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        // A sequence with a bracket ends with a letter of its own, others are one letter long.
        let end = match rest.first() {
            Some(b'[') => rest[1..].iter().position(|byte| (0x40..=0x7e).contains(byte)),
            Some(b']') => memchr2(0x07, b'\\', &rest[1..]),
            _ => None,
        };
        let is_long = matches!(rest.first(), Some(b'[' | b']'));
        let length = match end {
            Some(at) => at + 2,
            None if is_long => rest.len(),
            None => rest.len().min(1),
        };
        rest = &rest[length..];
    }
    kept.extend_from_slice(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<(usize, String, bool)> {
        let mut source = text;
        let mut lines = Lines::new(&mut source);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.text.into_owned(), line.is_ended));
        }
        all
    }

    #[test]
    fn every_end_of_line_ends_a_line_and_newlines_are_counted() {
        let found = lines(b"\xef\xbb\xbfone\r\n 10%\r 20%\r\n\ntwo\nthree");
        let expected = [
            (1, "one", true),
            (2, " 10%", true),
            (2, " 20%", true),
            (4, "two", true),
            (5, "three", false),
        ];
        let found: Vec<_> = found.iter().map(|(n, text, end)| (*n, text.as_str(), *end)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn colours_and_titles_are_dropped() {
        let text = b"\x1b[36m(pid=7)\x1b[0m loss \x1b]0;title\x071\x1b";
        assert_eq!(lines(text)[0].1, "(pid=7) loss 1");
    }
}
