//! YAML in and out, the only module that knows its syntax.
//!
//! Reading gives errors with path, line, column and the nearest known name. Writing keeps every
//! float bit for bit, NaN and infinities included, and arrays on one line.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::marker::PhantomData;
use std::path::Path;

use ndarray::{ArrayD, IxDyn};
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, unknown};
use crate::record::{Field, Kind, Record, Value};

/// Larger files are refused: a manifest or a case has a few kilobytes.
const LARGEST_FILE_BYTES: u64 = 16 << 20;

/// Files with more brackets in brackets are refused: the parser takes quadratic time over them.
const DEEPEST_BRACKETS: usize = 128;

/// Longer values are cut where a message quotes them.
const LONGEST_QUOTE: usize = 60;

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
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let (line, column) = line_and_column(error.as_bytes(), good);
        let byte = error.as_bytes()[good];
        Error::new(format!("expected UTF-8, found the byte 0x{byte:02x}"))
            .at(path)
            .line(line, column)
    })?;
    if let Some(position) = too_deep(&text) {
        let (line, column) = line_and_column(text.as_bytes(), position);
        let message = format!("expected at most {DEEPEST_BRACKETS} brackets in each other");
        return Err(Error::new(message).at(path).line(line, column));
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
    serde_yaml::from_str(text).map_err(|error| located(text, &error, ""))
}

/// A step into a document.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// The value of a key.
    Key(&'a str),
    /// The key itself, as the last step; for [`located_at`].
    Name(&'a str),
    /// An item of a list.
    Item(usize),
}

/// Reads the part of a document at the end of `steps`, or the default where there is none. So
/// that what only a contract can read (options, a case) has errors with line and column too.
///
/// # Errors
/// With line, column and the nearest known name.
pub fn parse_at<T: DeserializeOwned + Default>(text: &str, steps: &[Step<'_>]) -> Result<T, Error> {
    // The steps, as the YAML library writes them, say nothing new to who asked.
    let mut known = String::new();
    for step in steps.iter().take(steps.len().saturating_sub(1)) {
        let _ = match step {
            Step::Key(key) | Step::Name(key) if known.is_empty() => write!(known, "{key}"),
            Step::Key(key) | Step::Name(key) => write!(known, ".{key}"),
            Step::Item(index) => write!(known, "[{index}]"),
        };
    }
    At::<T> { steps, target: PhantomData }
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .map_err(|error| located(text, &error, &known))
}

/// The line and the column of a part of a document.
fn locate(text: &str, steps: &[Step<'_>]) -> Option<(usize, usize)> {
    let at = At::<Never> { steps, target: PhantomData };
    let error = at.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    error.location().map(|place| (place.line(), place.column()))
}

/// An error about a part of a document.
pub fn located_at(text: &str, steps: &[Step<'_>], why: impl Into<String>) -> Error {
    match locate(text, steps) {
        Some((line, column)) => Error::new(why).line(line, column),
        None => Error::new(why),
    }
}

/// A type that no value can be read as: the error is where the value is.
#[derive(Default)]
struct Never;

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Never)
    }
}

impl Visitor<'_> for Never {
    type Value = Never;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing at all")
    }
}

/// A key; one of this name is an error, where it is.
struct KeyBut<'a>(Option<&'a str>);

impl<'de> DeserializeSeed<'de> for KeyBut<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyBut<'_> {
    type Value = String;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<String, E> {
        if self.0 == Some(key) { Err(E::custom("here it is")) } else { Ok(key.to_owned()) }
    }
}

struct At<'a, T> {
    steps: &'a [Step<'a>],
    target: PhantomData<T>,
}

impl<'de, T: Deserialize<'de> + Default> DeserializeSeed<'de> for At<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        match self.steps.first() {
            None => T::deserialize(from),
            Some(Step::Key(_) | Step::Name(_)) => from.deserialize_map(self),
            Some(Step::Item(_)) => from.deserialize_seq(self),
        }
    }
}

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for At<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.steps.first() {
            Some(Step::Item(_)) => "a list",
            _ => "a mapping",
        })
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<T, M::Error> {
        let mut found = T::default();
        let but = match self.steps {
            [Step::Name(key)] => Some(*key),
            _ => None,
        };
        while let Some(key) = map.next_key_seed(KeyBut(but))? {
            match self.steps.first() {
                Some(Step::Key(wanted)) if *wanted == key => {
                    let rest = At { steps: &self.steps[1..], target: self.target };
                    found = map.next_value_seed(rest)?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<T, S::Error> {
        let Some(Step::Item(wanted)) = self.steps.first() else { return Ok(T::default()) };
        let mut found = T::default();
        let mut index = 0;
        loop {
            let here = At { steps: &self.steps[1..], target: self.target };
            let more = if index == *wanted {
                seq.next_element_seed(here)?.map(|value| found = value).is_some()
            } else {
                seq.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(found);
            }
            index += 1;
        }
    }
}

/// What the YAML library says of a second document, without saying where it is.
const SECOND_DOCUMENT: &str = "more than one document";

/// The error of the YAML library as ours: its position and its path taken out of the text, its
/// words turned into ours.
fn located(text: &str, error: &serde_yaml::Error, known: &str) -> Error {
    let message = without_positions(&error.to_string());
    let beginnings = ["invalid ", "unknown field ", "unknown variant ", "missing field "];
    let begin = beginnings.iter().chain(&["duplicate "]).filter_map(|words| message.find(words));
    let (path, message) = message.split_at(begin.min().unwrap_or(0));
    let path = path.trim_end_matches(": ");
    let path = path.strip_prefix(known).unwrap_or(path).trim_start_matches('.');
    let place = error.location();
    let at = place.as_ref().and_then(|place| text.as_bytes().get(place.index()));
    let found = Error::new(match at {
        Some(b'\t') => "expected spaces, found a tab".to_owned(),
        _ => in_our_words(message),
    });
    let found = if path.is_empty() { found } else { found.within(path) };
    let second = || message.contains(SECOND_DOCUMENT).then(|| text.rfind("\n---")).flatten();
    match place.map(|place| (place.line(), place.column())) {
        Some((line, column)) => found.line(line, column),
        None => match second() {
            Some(position) => found.line(line_and_column(text.as_bytes(), position + 1).0, 1),
            None => found,
        },
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
fn in_our_words(message: &str) -> String {
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
    } else if message.contains("repetition limit") {
        "the aliases (`*name`) unfold into too much".to_owned()
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

/// The beginning of a value that may be long.
fn cut(value: &str) -> String {
    match value.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
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

/// A record as a block of `name: value` lines, indented by two.
pub fn write_record<R: Record>(text: &mut String, record: &R) {
    for (name, value) in record.values() {
        let Some(value) = value else { continue };
        let _ = write!(text, "  {name}: ");
        match &value {
            Value::Float(array) => {
                crate::text::nested(text, array.view(), &|text, x| write_float(text, *x));
            }
            Value::Int(array) => {
                crate::text::nested(text, array.view(), &|text, x| text.push_str(&x.to_string()));
            }
            Value::Bool(array) => {
                crate::text::nested(text, array.view(), &|text, x| text.push_str(&x.to_string()));
            }
        }
        text.push('\n');
    }
}

/// Reads a record from the mapping at the end of `steps`.
///
/// # Errors
/// Unknown, missing or misshapen fields, with line, column and the nearest known name.
pub fn record_at<R: Record>(text: &str, steps: &[Step<'_>]) -> Result<R, Error> {
    let mapping: serde_yaml::Mapping = parse_at(text, steps)?;
    let fields = R::fields();
    let wrong = |path: &str, more: &[Step<'_>], why: String| {
        located_at(text, &[steps, more].concat(), why).within(path)
    };
    let whole = match steps.last() {
        Some(Step::Key(key)) => *key,
        _ => "record",
    };
    for key in mapping.keys() {
        let name = key.as_str().map_or_else(|| inline(key), str::to_owned);
        if !fields.iter().any(|field| field.name == name) {
            let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
            return Err(wrong(whole, &[Step::Name(&name)], unknown("key", &name, &known)));
        }
    }
    let mut values = Vec::new();
    for field in &fields {
        let value = match mapping.get(field.name) {
            None if field.optional => None,
            None => {
                let why = format!("the key `{}` is missing", field.name);
                return Err(wrong(whole, &[], why));
            }
            Some(yaml) => Some(read_array(field, yaml).map_err(|Misfit { index, why }| {
                let path = format!("{whole}.{}", field.name);
                let path = index.iter().fold(path, |path, index| format!("{path}[{index}]"));
                let items = index.into_iter().map(Step::Item);
                let more: Vec<_> = std::iter::once(Step::Key(field.name)).chain(items).collect();
                wrong(&path, &more, why)
            })?),
        };
        values.push((field.name, value));
    }
    R::from_values(&mut |name| {
        values.iter_mut().find(|(known, _)| *known == name).and_then(|(_, value)| value.take())
    })
    .map_err(|(name, why)| wrong(&format!("{whole}.{name}"), &[Step::Key(name)], why))
}

/// What is wrong at one place of a nested list.
struct Misfit {
    index: Vec<usize>,
    why: String,
}

fn read_array(field: &Field, yaml: &serde_yaml::Value) -> Result<Value, Misfit> {
    // The first items say which shape all must have.
    let mut shape = Vec::new();
    let mut inner = Some(yaml);
    while shape.len() < field.ndim {
        let items = inner.and_then(serde_yaml::Value::as_sequence);
        shape.push(items.map_or(0, Vec::len));
        inner = items.and_then(|items| items.first());
    }
    let misshapen = |error: ndarray::ShapeError| Misfit { index: vec![], why: error.to_string() };
    macro_rules! array {
        ($kind:ident, $expected:literal, $read:expr) => {{
            let mut elements = Vec::new();
            gather(yaml, &shape, &mut Vec::new(), &mut |leaf| {
                let element = $read(leaf).ok_or_else(|| format!("expected {}", $expected))?;
                elements.push(element);
                Ok(())
            })?;
            ArrayD::from_shape_vec(IxDyn(&shape), elements).map(Value::$kind).map_err(misshapen)
        }};
    }
    match field.kind {
        Kind::Float => array!(Float, "a number", serde_yaml::Value::as_f64),
        Kind::Int => array!(Int, "an integer of 64 bits", serde_yaml::Value::as_i64),
        Kind::Bool => array!(Bool, "true or false", serde_yaml::Value::as_bool),
    }
}

/// Gives every leaf of a nested list of this shape to `take`, in order.
fn gather(
    yaml: &serde_yaml::Value,
    shape: &[usize],
    index: &mut Vec<usize>,
    take: &mut dyn FnMut(&serde_yaml::Value) -> Result<(), String>,
) -> Result<(), Misfit> {
    let misfit = |index: &[usize], expected: String, found: String| {
        Err(Misfit { index: index.to_vec(), why: format!("{expected}, found {found}") })
    };
    let Some((length, rest)) = shape.split_first() else {
        return take(yaml).or_else(|expected| misfit(index, expected, shown(yaml)));
    };
    let Some(items) = yaml.as_sequence() else {
        return misfit(index, "expected a list".to_owned(), shown(yaml));
    };
    if items.len() != *length {
        let expected = format!("expected {length} items, as in the first list");
        return misfit(index, expected, items.len().to_string());
    }
    for (place, item) in items.iter().enumerate() {
        index.push(place);
        gather(item, rest, index, take)?;
        index.pop();
    }
    Ok(())
}

/// A value in a message.
fn shown(yaml: &serde_yaml::Value) -> String {
    let hint = match yaml.as_str().map(str::to_lowercase).as_deref() {
        Some("nan") => "; YAML writes `.nan`",
        Some("inf" | "infinity" | "-inf" | "-infinity") => "; YAML writes `.inf` and `-.inf`",
        _ => "",
    };
    let text = yaml.as_str().map_or_else(|| inline(yaml), |text| format!("{text:?}"));
    format!("{}{hint}", cut(&text))
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
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Part {
            #[serde(default)]
            #[expect(dead_code, reason = "only its name matters here")]
            epsilon: f64,
        }
        let text = "components:\n  - name: a\n  - name: b\n    options:\n      epsilom: 1\n";
        let steps = [Step::Key("components"), Step::Item(1), Step::Key("options")];
        let error = parse_at::<Part>(text, &steps).unwrap_err().to_string();
        assert!(error.contains("`epsilon`"), "{error}");
    }
}
