//! YAML in and out, the only module that knows its syntax.
//!
//! Reading gives errors with path, line, column and the nearest known name. Writing keeps every
//! float bit for bit, NaN and infinities included, and arrays on one line.

mod document;
mod events;
mod failed;
mod reader;
mod record;
mod scalar;
mod tree;
mod words;

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::value::error::Error;
pub use document::{Document, Step};
pub use record::{record_at, write_record};

/// Larger files are refused: a manifest or a case has a few kilobytes.
pub const LARGEST_FILE_BYTES: u64 = 16 << 20;

/// Files with more brackets in brackets are refused: the parser takes quadratic time over them.
const DEEPEST_BRACKETS: usize = 128;

/// The text of a file.
///
/// # Errors
/// It cannot be read, is too large, is not UTF-8, or is nested without end.
pub fn read(path: &Path) -> Result<String, Error> {
    let read_error = |error: std::io::Error| Error::io("read", path, &error);
    let file = File::open(path).map_err(read_error)?;
    let metadata = file.metadata().map_err(read_error)?;
    if metadata.is_dir() {
        return Err(Error::new("expected a YAML file, found a folder").at(path));
    }
    // What is no regular file does not tell its length before it has been read.
    let mut bytes = Vec::new();
    if metadata.len() <= LARGEST_FILE_BYTES {
        file.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(read_error)?;
    }
    let length = metadata.len().max(bytes.len() as u64);
    if length > LARGEST_FILE_BYTES {
        let message = format!("expected at most {LARGEST_FILE_BYTES} bytes, found {length}");
        return Err(Error::new(message).at(path));
    }
    text(bytes).map_err(|error| error.at(path))
}

/// The text that some bytes are.
///
/// # Errors
/// They are not UTF-8, or nested without end.
pub fn text(bytes: Vec<u8>) -> Result<String, Error> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let (line, column) = line_and_column(error.as_bytes(), good);
        let byte = error.as_bytes()[good];
        Error::new(format!("expected UTF-8, found the byte 0x{byte:02x}")).line(line, column)
    })?;
    // Editors on Windows begin with it.
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    if let Some(position) = too_deep(&text) {
        let (line, column) = line_and_column(text.as_bytes(), position);
        let message = format!("expected at most {DEEPEST_BRACKETS} brackets in each other");
        return Err(Error::new(message).line(line, column));
    }
    Ok(text)
}

/// The line and the column of a byte, both counted from 1.
fn line_and_column(bytes: &[u8], position: usize) -> (usize, usize) {
    let before = &bytes[..position];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    (line, column)
}

/// Where brackets are nested too deep, those in double quotes apart.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut before = b' ';
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' if quoted => quoted = false,
            _ if quoted => {}
            // Inside a plain word a quote is a character like any other.
            b'"' if b" \n[{,:".contains(&before) => quoted = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_BRACKETS {
            return Some(position);
        }
        before = byte;
    }
    None
}

/// Reads a whole document.
///
/// # Errors
/// With line, column and the nearest known name.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    Document::new(text).read()
}

/// A value with another one, given as YAML, for one of its keys.
///
/// # Errors
/// The text is no YAML, or the key takes no such value.
pub(crate) fn with_key<T>(value: &T, key: &str, text: &str) -> Result<T, Error>
where
    T: Serialize + DeserializeOwned,
{
    let changed: serde_yaml::Value = parse(text)?;
    let mut whole = serde_yaml::to_value(value).expect("options can be written");
    if let Some(mapping) = whole.as_mapping_mut() {
        mapping.insert(key.into(), changed);
    }
    parse(&inline(&whole))
}

/// A value in YAML's flow style, on one line.
pub fn inline<T: Serialize>(value: &T) -> String {
    let mut text = String::new();
    let value = serde_yaml::to_value(value).expect("options and scalars can be written");
    write_inline(&mut text, &value);
    text
}

fn write_inline(text: &mut String, value: &serde_yaml::Value) {
    use serde_yaml::Value as Yaml;
    match value {
        Yaml::Null => text.push_str("null"),
        Yaml::Bool(flag) => drop(write!(text, "{flag}")),
        Yaml::Number(number) => match number.as_f64() {
            Some(x) if number.is_f64() => write_float(text, x),
            _ => drop(write!(text, "{number}")),
        },
        Yaml::String(string) => write_string(text, string),
        Yaml::Sequence(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_inline(text, item);
            }
            text.push(']');
        }
        Yaml::Mapping(entries) => {
            text.push('{');
            for (index, (key, item)) in entries.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_inline(text, key);
                text.push_str(": ");
                write_inline(text, item);
            }
            text.push('}');
        }
        Yaml::Tagged(tagged) => write_inline(text, &tagged.value),
    }
}

/// A float that reads back as the same bits.
pub fn write_float(text: &mut String, x: f64) {
    let _ = if x.is_nan() {
        text.write_str(".nan")
    } else if x.is_infinite() {
        text.write_str(if x > 0.0 { ".inf" } else { "-.inf" })
    } else if x == 0.0 || (1e-5..1e16).contains(&x.abs()) {
        write!(text, "{x:?}")
    } else {
        // `{:e}` gives 1e-7; YAML's floats need a point.
        let exponential = format!("{x:e}");
        let (digits, exponent) = exponential.split_once('e').unwrap_or((&exponential, "0"));
        let point = if digits.contains('.') { "" } else { ".0" };
        let sign = if exponent.starts_with('-') { "" } else { "+" };
        write!(text, "{digits}{point}e{sign}{exponent}")
    };
}

/// A string: plain where that cannot be mistaken, else in double quotes with escapes.
pub fn write_string(text: &mut String, string: &str) {
    let plain = !string.is_empty()
        && string.starts_with(|c: char| c.is_ascii_alphabetic())
        && string.chars().all(|c| c.is_ascii_alphanumeric() || "-_/.".contains(c))
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
            .contains(&string.to_lowercase().as_str());
    if plain {
        text.push_str(string);
        return;
    }
    text.push('"');
    for c in string.chars() {
        let _ = match c {
            '"' => text.write_str("\\\""),
            '\\' => text.write_str("\\\\"),
            '\n' => text.write_str("\\n"),
            '\t' => text.write_str("\\t"),
            ' '..='~' => text.write_char(c),
            c if c.is_alphanumeric() && (c as u32) < 0xd800 => text.write_char(c),
            c if (c as u32) <= 0xffff => write!(text, "\\u{:04x}", c as u32),
            c => write!(text, "\\U{:08x}", c as u32),
        };
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_back_bit_for_bit() {
        let awkward = [
            0.0,
            -0.0,
            1.0,
            0.1,
            1e-5,
            9.999e-6,
            1e16,
            1e300,
            5e-324,
            -1.5e-7,
            f64::MAX,
            f64::MIN_POSITIVE,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            123_456_789.125,
        ];
        for x in awkward {
            let mut text = String::new();
            write_float(&mut text, x);
            let back: f64 = parse(&text).unwrap();
            assert_eq!(back.to_bits(), x.to_bits(), "{x} was written as {text}");
        }
    }

    #[test]
    fn strings_read_back() {
        for string in
            ["", "null", "no", "a: b", "#x", "ü\u{feff}\u{85}\u{2028}", "😀\0\"\\\n", "1e5"]
        {
            let mut text = String::new();
            write_string(&mut text, string);
            assert_eq!(parse::<String>(&text).unwrap(), string, "written as {text}");
        }
    }

    #[test]
    fn a_part_of_a_document_has_errors_with_its_own_line() {
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Part {
            #[serde(default)]
            #[expect(dead_code, reason = "only its name matters here")]
            epsilon: f64,
        }
        let text = "components:\n  - name: a\n  - name: b\n    options:\n      epsilom: 1\n";
        let steps = [Step::Key("components"), Step::Item(1), Step::Key("options")];
        let error = Document::new(text).read_at::<Part>(&steps).unwrap_err().to_string();
        assert!(error.contains("`epsilon`"), "{error}");
    }
}
