//! The YAML library's errors in words for people who have never heard of serde.

use super::line_and_column;
use crate::value::error::{Error, cut, unknown};

/// What the YAML library says of a second document, without saying where it is.
const SECOND_DOCUMENT: &str = "more than one document";

/// What the YAML library says of a text that is not YAML, as our error.
pub(super) fn located(text: &str, error: &serde_yaml::Error) -> Error {
    let message = without_positions(&error.to_string());
    let place = error.location();
    let at = place.as_ref().and_then(|place| text.as_bytes().get(place.index()));
    let found = Error::new(match at {
        Some(b'\t') => "expected spaces, found a tab".to_owned(),
        _ => in_our_words(&message),
    });
    let second = || {
        let begins = ["\n---", "\r---", "\n...", "\r..."];
        let last = begins.iter().filter_map(|begin| text.rfind(begin)).max();
        message.contains(SECOND_DOCUMENT).then(|| last.map_or(0, |before| before + 1))
    };
    match place.map(|place| inside(text, &place)) {
        Some((line, column)) => found.line(line, column),
        None => match second() {
            Some(position) => found.line(line_and_column(text.as_bytes(), position).0, 1),
            None => found,
        },
    }
}

/// The line and the column of a place, inside the text: the library counts one more line where the
/// last one has no end.
fn inside(text: &str, place: &serde_yaml::Location) -> (usize, usize) {
    if place.line() <= text.split('\n').count() {
        (place.line(), place.column())
    } else {
        line_and_column(text.as_bytes(), text.len())
    }
}

/// The text without ` at line 3 column 1`, wherever that stands.
fn without_positions(text: &str) -> String {
    let mut parts = text.split(" at line ");
    let mut kept = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        match rest.strip_prefix(" column ") {
            Some(rest) => kept.push_str(rest.trim_start_matches(|c: char| c.is_ascii_digit())),
            None => kept.extend([" at line ", part]),
        }
    }
    kept
}

/// What serde says, as people who have never heard of it would: what was expected, then what was
/// found.
pub(super) fn in_our_words(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let mut name = || names.next().unwrap_or("");
    if let Some(wrong) = ["invalid type: ", "invalid value: "]
        .iter()
        .chain(&["invalid length "])
        .find_map(|words| message.strip_prefix(words))
    {
        let (found, expected) = wrong.rsplit_once(", expected ").unwrap_or((wrong, "another"));
        format!("expected {}, found {}", expected_in_our_words(expected), found_in_our_words(found))
    } else if message.starts_with("unknown field ") {
        unknown("key", name(), &names.collect::<Vec<_>>())
    } else if message.starts_with("unknown variant ") {
        unknown("value", name(), &names.collect::<Vec<_>>())
    } else if message.starts_with("missing field ") {
        format!("the key `{}` is missing", name())
    } else if message.starts_with("duplicate field ") {
        format!("the key `{}` is given twice", name())
    } else if let Some(key) = message.strip_prefix("duplicate entry with key ") {
        format!("the key `{}` is given twice", key.trim_matches('"'))
    } else if message.contains(SECOND_DOCUMENT) {
        "expected one document, found another after `---`".to_owned()
    } else if message == "unknown anchor" {
        "the alias (`*name`) has no anchor (`&name`) before it".to_owned()
    } else if message.contains("while scanning a quoted scalar") {
        "expected a closing quote, found the end of the file".to_owned()
    } else if message.contains("expected node content") {
        "expected a value".to_owned()
    } else {
        message.to_owned()
    }
}

fn expected_in_our_words(expected: &str) -> &str {
    match expected {
        "f64" => "a number",
        "u8" => "a whole number from 0 to 255",
        "u32" | "u64" | "usize" => "a whole number ≥ 0",
        "a sequence" => "a list",
        "a map" | "a YAML mapping" => "a mapping",
        "a string" | "path string" => "text",
        "sequence of 2 elements" | "an array of length 2" => "a list of 2 items",
        _ if expected.starts_with("struct ") => "a mapping",
        _ => expected,
    }
}

/// What was found, in our words.
fn found_in_our_words(found: &str) -> String {
    match found {
        "sequence" => "a list".to_owned(),
        "map" => "a mapping".to_owned(),
        "unit value" => "nothing".to_owned(),
        "1" => "1 item".to_owned(),
        length if length.chars().all(|c| c.is_ascii_digit()) => format!("{length} items"),
        value => {
            let kinds = ["string ", "integer ", "floating point ", "boolean "];
            let bare = kinds.iter().find_map(|kind| value.strip_prefix(kind));
            cut(bare.unwrap_or(value).trim_matches('`'))
        }
    }
}
