//! Records as YAML: the arrays of a case, each number where it stands.

use std::fmt::Write as _;

use ndarray::{ArrayD, IxDyn};

use super::words::cut;
use super::{Step, inline, located_at, parse_at, write_float};
use crate::error::{Error, unknown};
use crate::record::{Field, Kind, Record, Value};

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
