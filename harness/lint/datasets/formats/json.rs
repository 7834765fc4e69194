//! JSON lines, and one array of objects: each row is read alone, so that a bad one spoils no other.

use std::borrow::Cow;
use std::io::{BufRead, Error};

use serde_json::Value as Json;

use super::{BYTE_ORDER_MARK, Format, Item, LONGEST_ROW, Take};

pub(super) fn read(text: impl BufRead, format: Format, take: Take<'_>) -> Result<(), Error> {
    let mut splitter = Splitter::new(format == Format::JsonArray);
    let mut reader = text;
    loop {
        let part = reader.fill_buf()?;
        if part.is_empty() {
            break;
        }
        let length = part.len();
        part.iter().for_each(|byte| splitter.byte(*byte, take));
        reader.consume(length);
    }
    splitter.finish(take);
    Ok(())
}

/// Cuts a text into its rows: at ends of lines, or at the commas of an array.
struct Splitter {
    is_array: bool,
    row: Vec<u8>,
    is_too_long: bool,
    line: u64,
    first_line: u64,
    depth: u32,
    in_text: bool,
    after_backslash: bool,
}

impl Splitter {
    fn new(is_array: bool) -> Splitter {
        Splitter {
            is_array,
            row: Vec::new(),
            is_too_long: false,
            line: 1,
            first_line: 1,
            depth: 0,
            in_text: false,
            after_backslash: false,
        }
    }

    fn byte(&mut self, byte: u8, take: Take<'_>) {
        match self.is_array {
            true => self.byte_of_array(byte, take),
            false if byte == b'\n' => self.finish(take),
            false => self.keep(byte),
        }
        self.line += u64::from(byte == b'\n');
    }

    fn byte_of_array(&mut self, byte: u8, take: Take<'_>) {
        let inside = std::mem::replace(&mut self.after_backslash, false);
        match byte {
            _ if self.in_text => {
                self.after_backslash = byte == b'\\' && !inside;
                self.in_text = byte != b'"' || inside;
                self.keep(byte);
            }
            b'[' | b'{' => {
                self.depth = self.depth.saturating_add(1);
                // The first one opens the array itself; a byte-order mark may stand before it.
                match self.depth {
                    1 => self.row.clear(),
                    _ => self.keep(byte),
                }
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                match self.depth {
                    0 => self.finish(take),
                    _ => self.keep(byte),
                }
            }
            b',' if self.depth == 1 => self.finish(take),
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.row.is_empty() {
            if byte.is_ascii_whitespace() {
                return;
            }
            self.first_line = self.line;
        }
        match self.row.len() < LONGEST_ROW {
            true => self.row.push(byte),
            false => self.is_too_long = true,
        }
    }

    fn finish(&mut self, take: Take<'_>) {
        if !self.row.is_empty() {
            let item = match self.is_too_long {
                true => Item::Bad("longer than 64 MiB".to_owned()),
                false => parsed(self.row.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.row)),
            };
            take(self.first_line, item);
        }
        self.row.clear();
        // The longest rows do not keep their memory.
        self.row.shrink_to(1 << 20);
        self.is_too_long = false;
    }
}

fn parsed(row: &[u8]) -> Item {
    let read = serde_json::from_slice(row);
    let read = read.or_else(|error| match without_non_finite(row) {
        Cow::Owned(plain) => serde_json::from_slice::<Json>(&plain),
        Cow::Borrowed(_) => Err(error),
    });
    match read {
        Ok(row) => Item::Row(row),
        // The row is named by its line in the file; this is the one inside the row.
        Err(error) => Item::Bad(said(&error)),
    }
}

fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// Python writes `NaN`, `Infinity` and `-Infinity`, which are no JSON: null stands for them here.
fn without_non_finite(row: &[u8]) -> Cow<'_, [u8]> {
    const NAMES: [&[u8]; 3] = [b"NaN", b"-Infinity", b"Infinity"];
    let (mut plain, mut in_text, mut at, mut found) = (Vec::new(), false, 0, false);
    while at < row.len() {
        let name = NAMES.iter().find(|name| !in_text && row[at..].starts_with(name));
        if let Some(name) = name {
            plain.extend(b"null");
            at += name.len();
            found = true;
            continue;
        }
        if in_text && row[at] == b'\\' {
            plain.push(row[at]);
            at += 1;
        } else if row[at] == b'"' {
            in_text = !in_text;
        }
        plain.extend(row.get(at));
        at += 1;
    }
    if found { Cow::Owned(plain) } else { Cow::Borrowed(row) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(u64, Option<Json>)> {
        let mut rows = Vec::new();
        let is_array = text.trim_start_matches('\u{feff}').trim_start().starts_with('[');
        let format = if is_array { Format::JsonArray } else { Format::JsonLines };
        let mut take = |line, item| {
            rows.push(match item {
                Item::Row(row) => (line, Some(row)),
                Item::Bad(_) => (line, None),
            });
        };
        read(text.as_bytes(), format, &mut take).expect("bytes can be read");
        rows
    }

    #[test]
    fn a_bad_line_spoils_no_other() {
        let read = rows("\u{feff}{\"a\": 1}\r\n\n{\"a\": \n{\"a\": NaN, \"b\": \"NaN \\\" NaN\"}");
        assert_eq!(read.len(), 3);
        assert_eq!(read[0], (1, Some(serde_json::json!({"a": 1}))));
        assert_eq!(read[1], (3, None));
        assert_eq!(read[2], (4, Some(serde_json::json!({"a": null, "b": "NaN \" NaN"}))));
    }

    #[test]
    fn an_array_is_read_object_by_object() {
        let read = rows("\u{feff}[\n  {\"a\": \"]\\\"},{\"},\n  {\n\"a\": [1, {}]}, oops\n]\n");
        assert_eq!(read[0], (2, Some(serde_json::json!({"a": "]\"},{"}))));
        assert_eq!(read[1], (3, Some(serde_json::json!({"a": [1, {}]}))));
        assert_eq!(read[2], (4, None));
        assert_eq!(read.len(), 3);
    }
}
