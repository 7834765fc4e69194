//! YAML in and out, the only module that knows its syntax.
//!
//! Reading gives errors with path, line, column and the nearest known name. Writing keeps every
//! float bit for bit, NaN and infinities included, and arrays on one line.

use std::fmt::Write as _;
use std::path::Path;

use ndarray::{ArrayD, IxDyn};
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, nearest};
use crate::record::{Field, Kind, Record, Value};

/// Larger files are refused: a manifest or a case has a few kilobytes.
const LARGEST_FILE_BYTES: u64 = 16 << 20;

/// The text of a file.
///
/// # Errors
/// It cannot be read, is too large, or is not UTF-8.
pub fn read(path: &Path) -> Result<String, Error> {
    let read_error = |error: std::io::Error| Error::io("read", path, &error);
    let metadata = std::fs::metadata(path).map_err(read_error)?;
    if metadata.is_dir() {
        return Err(Error::new("this is a folder, expected a YAML file").at(path));
    }
    if metadata.len() > LARGEST_FILE_BYTES {
        return Err(Error::new(format!(
            "the file has {} bytes, expected at most {LARGEST_FILE_BYTES}",
            metadata.len()
        ))
        .at(path));
    }
    let bytes = std::fs::read(path).map_err(read_error)?;
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = good.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Error::new("the file is not UTF-8").at(path).line(line, column)
    })
}

/// Reads a whole document.
///
/// # Errors
/// With line, column and the nearest known name.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_yaml::from_str(text).map_err(|error| located(&error))
}

/// A step into a document.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// The value of a key.
    Key(&'a str),
    /// An item of a list.
    Item(usize),
}

/// Reads the part of a document at the end of `steps`, or the default where there is none. So
/// that what only a contract can read (options, a case) has errors with line and column too.
///
/// # Errors
/// With line, column and the nearest known name.
pub fn parse_at<T: DeserializeOwned + Default>(text: &str, steps: &[Step<'_>]) -> Result<T, Error> {
    At::<T> { steps, target: std::marker::PhantomData }
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .map_err(|error| located(&error))
}

struct At<'a, T> {
    steps: &'a [Step<'a>],
    target: std::marker::PhantomData<T>,
}

impl<'de, T: Deserialize<'de> + Default> DeserializeSeed<'de> for At<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        match self.steps.first() {
            None => T::deserialize(from),
            Some(Step::Key(_)) => from.deserialize_map(self),
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
        while let Some(key) = map.next_key::<String>()? {
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

/// The error of the YAML library as ours: its position taken out of the text, a suggestion put in.
fn located(error: &serde_yaml::Error) -> Error {
    let mut message = error.to_string();
    if let Some(at) = message.rfind(" at line ") {
        message.truncate(at);
    }
    // `unknown field `x`, expected one of `a`, `b``: the names in backticks, the unknown first.
    if message.contains("unknown field") || message.contains("unknown variant") {
        let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        if let Some((unknown, known)) = names.split_first() {
            let suggestion = nearest(unknown, known.iter().copied());
            message =
                message.replacen(&format!("`{unknown}`"), &format!("`{unknown}`{suggestion}"), 1);
        }
    }
    match error.location() {
        Some(place) => Error::new(message).line(place.line(), place.column()),
        None => Error::new(message),
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

/// A record read from a YAML mapping.
///
/// # Errors
/// Unknown, missing or misshapen fields, named.
pub fn read_record<R: Record>(mapping: &serde_yaml::Mapping) -> Result<R, String> {
    let fields = R::fields();
    for key in mapping.keys() {
        let key = key.as_str().unwrap_or("?");
        if !fields.iter().any(|field| field.name == key) {
            let names = fields.iter().map(|field| field.name);
            return Err(format!("unknown field `{key}`{}", nearest(key, names)));
        }
    }
    let mut values = Vec::new();
    for field in &fields {
        let value = match mapping.get(field.name) {
            None => None,
            Some(yaml) => {
                Some(read_array(field, yaml).map_err(|why| format!("`{}`: {why}", field.name))?)
            }
        };
        values.push((field.name, value));
    }
    R::from_values(&mut |name| {
        values.iter_mut().find(|(known, _)| *known == name).and_then(|(_, value)| value.take())
    })
    .map_err(|(name, why)| format!("`{name}`: {why}"))
}

fn read_array(field: &Field, yaml: &serde_yaml::Value) -> Result<Value, String> {
    let mut shape = Vec::new();
    let mut inner = yaml;
    while let Some(items) = inner.as_sequence() {
        shape.push(items.len());
        match items.first() {
            Some(first) => inner = first,
            None => break,
        }
    }
    shape.resize(shape.len().max(field.ndim), 0);
    if shape.len() != field.ndim {
        return Err(format!(
            "expected lists nested {} deep, found {} deep",
            field.ndim,
            shape.len()
        ));
    }
    let mut leaves = Vec::new();
    flatten(yaml, &shape, &mut leaves)?;
    let shape = IxDyn(&shape);
    let wrong = |leaf: &serde_yaml::Value, expected: &str| {
        format!("expected {expected}, found {}", inline(leaf))
    };
    Ok(match field.kind {
        Kind::Float => {
            let number =
                |leaf: &&serde_yaml::Value| leaf.as_f64().ok_or_else(|| wrong(leaf, "a number"));
            let numbers: Result<Vec<f64>, _> = leaves.iter().map(number).collect();
            Value::Float(ArrayD::from_shape_vec(shape, numbers?).map_err(|e| e.to_string())?)
        }
        Kind::Int => {
            let number =
                |leaf: &&serde_yaml::Value| leaf.as_i64().ok_or_else(|| wrong(leaf, "an integer"));
            let numbers: Result<Vec<i64>, _> = leaves.iter().map(number).collect();
            Value::Int(ArrayD::from_shape_vec(shape, numbers?).map_err(|e| e.to_string())?)
        }
        Kind::Bool => {
            let flag = |leaf: &&serde_yaml::Value| {
                leaf.as_bool().ok_or_else(|| wrong(leaf, "true or false"))
            };
            let flags: Result<Vec<bool>, _> = leaves.iter().map(flag).collect();
            Value::Bool(ArrayD::from_shape_vec(shape, flags?).map_err(|e| e.to_string())?)
        }
    })
}

fn flatten<'a>(
    yaml: &'a serde_yaml::Value,
    shape: &[usize],
    leaves: &mut Vec<&'a serde_yaml::Value>,
) -> Result<(), String> {
    let Some((length, rest)) = shape.split_first() else {
        leaves.push(yaml);
        return Ok(());
    };
    let items = yaml.as_sequence().ok_or("lists are nested unevenly")?;
    if items.len() != *length {
        return Err(format!("lists have {} and {length} items, expected equal ones", items.len()));
    }
    items.iter().try_for_each(|item| flatten(item, rest, leaves))
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
        assert!(error.contains("did you mean `epsilon`"), "{error}");
    }
}
