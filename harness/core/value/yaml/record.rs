//! Records as YAML: the arrays of a case, each number where it stands.

use std::collections::HashMap;
use std::fmt::Write as _;

use ndarray::{ArrayD, IxDyn};
use serde_yaml::Mapping;

use super::{Document, Step, inline, write_float, write_string};
use crate::value::error::{Error, cut, unknown};
use crate::value::record::{
    AnyRecord, Branch, Field, Kind, Misfit, Shared, Source, Tree, Value, item, tree,
};
use crate::value::text::nested;

/// A record as a block of `name: value` lines, indented by two.
pub fn write_record(text: &mut String, record: &dyn AnyRecord) {
    write_branch(text, &tree(record), 2, "  ");
}

/// The fields of a record, each line indented by `depth` but for the first, which begins with
/// `first`.
fn write_branch(text: &mut String, branch: &Branch, depth: usize, first: &str) {
    for (place, (name, tree)) in branch.iter().enumerate() {
        match place {
            0 => text.push_str(first),
            _ => text.extend(std::iter::repeat_n(' ', depth)),
        }
        let _ = write!(text, "{name}:");
        match tree {
            Tree::Value(value) => {
                text.push(' ');
                write_value(text, value);
                text.push('\n');
            }
            Tree::List(items) => {
                text.push('\n');
                let dash = format!("{}- ", " ".repeat(depth + 2));
                items.iter().for_each(|item| write_branch(text, item, depth + 4, &dash));
            }
        }
    }
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Float(array) => nested(text, array.view(), &|text, x| write_float(text, *x)),
        Value::Int(array) => nested(text, array.view(), &|text, x| text.push_str(&x.to_string())),
        Value::Bool(array) => nested(text, array.view(), &|text, x| text.push_str(&x.to_string())),
        Value::Text(array) => nested(text, array.view(), &|text, x| match x {
            Some(x) => write_string(text, x),
            None => text.push_str("null"),
        }),
    }
}

/// Reads a record of these fields from the mapping at the end of `steps`; `make` makes it of its
/// values.
///
/// # Errors
/// Unknown, missing or misshapen fields, with line, column and the nearest known name.
pub fn record_at(
    document: &Document,
    steps: &[Step<'_>],
    fields: &[Field],
    make: impl FnOnce(Source<'_, Value>) -> Result<Shared, Misfit>,
) -> Result<Shared, Error> {
    let mapping: Mapping = document.read_at(steps)?;
    let whole = match steps.last() {
        Some(Step::Key(key)) => *key,
        _ => "record",
    };
    let here = Here { document, steps, path: whole.to_owned() };
    let mut values = HashMap::new();
    read_fields(&here, fields, &mapping, &|field| field, &mut values)?;
    make(&mut |name| values.remove(name)).map_err(|(name, why)| {
        let steps = name.split('.').map(|part| part.parse().map_or(Step::Key(part), Step::Item));
        here.wrong(&steps.collect::<Vec<_>>(), why)
    })
}

/// Where a part of a record stands.
struct Here<'a> {
    document: &'a Document,
    steps: &'a [Step<'a>],
    path: String,
}

impl Here<'_> {
    /// An error at the end of more steps.
    fn wrong(&self, more: &[Step<'_>], why: String) -> Error {
        let path = more.iter().fold(self.path.clone(), |path, step| match step {
            Step::Key(key) => format!("{path}.{key}"),
            Step::Item(index) => format!("{path}[{index}]"),
            Step::Name(_) => path,
        });
        self.document.wrong(&[self.steps, more].concat(), why).within(path)
    }
}

/// Reads the fields of a record, or of an item of a list; `name` makes their flat names.
fn read_fields(
    here: &Here<'_>,
    fields: &[Field],
    mapping: &Mapping,
    name: &dyn Fn(&'static str) -> &'static str,
    values: &mut HashMap<&'static str, Value>,
) -> Result<(), Error> {
    for key in mapping.keys() {
        let key = key.as_str().map_or_else(|| inline(key), str::to_owned);
        if !fields.iter().any(|field| field.name == key) {
            let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
            return Err(here.wrong(&[Step::Name(&key)], unknown("key", &key, &known)));
        }
    }
    for field in fields {
        match mapping.get(field.name) {
            None if field.optional => {}
            None => return Err(here.wrong(&[], format!("the key `{}` is missing", field.name))),
            Some(yaml) if field.kind == Kind::List => {
                read_list(here, field, yaml, name(field.name), values)?;
            }
            Some(yaml) => {
                let value = read_array(field, yaml).map_err(|Misplaced { index, why }| {
                    let items = index.into_iter().map(Step::Item);
                    let more = std::iter::once(Step::Key(field.name)).chain(items);
                    here.wrong(&more.collect::<Vec<_>>(), why)
                })?;
                values.insert(name(field.name), value);
            }
        }
    }
    Ok(())
}

/// Reads a list of records, whose flat name is `list`.
fn read_list(
    here: &Here<'_>,
    field: &Field,
    yaml: &serde_yaml::Value,
    list: &'static str,
    values: &mut HashMap<&'static str, Value>,
) -> Result<(), Error> {
    let expected = |what: &str, yaml| format!("expected {what}, found {}", shown(yaml));
    let Some(items) = yaml.as_sequence() else {
        return Err(here.wrong(&[Step::Key(field.name)], expected("a list", yaml)));
    };
    for (index, yaml) in items.iter().enumerate() {
        let more = [Step::Key(field.name), Step::Item(index)];
        let Some(mapping) = yaml.as_mapping() else {
            return Err(here.wrong(&more, expected("a mapping", yaml)));
        };
        let path = format!("{}.{}[{index}]", here.path, field.name);
        let inside = Here { document: here.document, steps: &[here.steps, &more].concat(), path };
        read_fields(&inside, &field.items, mapping, &|field| item(list, index, field), values)?;
    }
    Ok(())
}

/// What is wrong at one place of a nested list.
struct Misplaced {
    index: Vec<usize>,
    why: String,
}

fn read_array(field: &Field, yaml: &serde_yaml::Value) -> Result<Value, Misplaced> {
    // The first items say which shape all must have.
    let mut shape = Vec::new();
    let mut inner = Some(yaml);
    while field.ndim.map_or(inner.is_some_and(|y| y.is_sequence()), |ndim| shape.len() < ndim) {
        let items = inner.and_then(serde_yaml::Value::as_sequence);
        shape.push(items.map_or(0, Vec::len));
        inner = items.and_then(|items| items.first());
    }
    let misshapen =
        |error: ndarray::ShapeError| Misplaced { index: vec![], why: error.to_string() };
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
        Kind::Text => array!(Text, "a text in quotes", |leaf: &serde_yaml::Value| match leaf {
            serde_yaml::Value::Null => Some(None),
            serde_yaml::Value::String(text) => Some(Some(text.clone())),
            _ => None,
        }),
        Kind::List => unreachable!("a list is read item by item"),
    }
}

/// Gives every leaf of a nested list of this shape to `take`, in order.
fn gather(
    yaml: &serde_yaml::Value,
    shape: &[usize],
    index: &mut Vec<usize>,
    take: &mut dyn FnMut(&serde_yaml::Value) -> Result<(), String>,
) -> Result<(), Misplaced> {
    let misfit = |index: &[usize], expected: String, found: String| {
        Err(Misplaced { index: index.to_vec(), why: format!("{expected}, found {found}") })
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
    use std::sync::Arc;

    use super::*;
    use crate::value::record::tests::{Parts, parts};
    use crate::value::record::{Record as _, same_bits, typed};

    const TEXT: &str = "\
case:
  steps: 3
  parts:
    - losses: [[1.0, 2.0]]
      mask: [[true, false]]
    - losses: [[-0.0], [0.1]]
  rate: 0.5
";

    fn read(text: &str) -> Result<Parts, String> {
        let make = |get: Source<'_, Value>| Ok(Arc::new(Parts::from_values(get)?) as Shared);
        let case = record_at(&Document::new(text), &[Step::Key("case")], &<Parts>::fields(), make);
        case.map(typed).map_err(|error| error.at(std::path::Path::new("file")).to_string())
    }

    #[test]
    fn lists_are_written_as_lists_and_read_back() {
        let mut text = "case:\n".to_owned();
        write_record(&mut text, &parts());
        assert_eq!(text, TEXT);
        assert!(same_bits(&read(TEXT).unwrap(), &parts()));
        let flow = "case: {steps: 3, parts: [{losses: [[1.0, 2.0]], mask: [[true, false]]}, \
                    {losses: [[-0.0], [0.1]]}], rate: 0.5}";
        assert!(same_bits(&read(flow).unwrap(), &parts()));
        assert!(read(&TEXT.replace("  parts:\n", "  parts: []\n  #")).is_err());
    }

    #[test]
    fn errors_in_lists_say_where_and_what() {
        let second = "- losses: [[-0.0], [0.1]]";
        for (from, to, expected) in [
            ("3", "3.5", "2:10: case.steps: expected an integer of 64 bits, found 3.5"),
            ("3", "[3]", "2:10: case.steps: expected an integer of 64 bits, found [3]"),
            (
                "mask",
                "masks",
                "5:7: case.parts[0]: unknown key `masks`, expected one of `losses`, `mask`; did \
                 you mean `mask`?",
            ),
            ("0.1", "one", "6:25: case.parts[1].losses[1][0]: expected a number, found \"one\""),
            (second, "- mask: [[true]]", "6:7: case.parts[1]: the key `losses` is missing"),
            (second, "- 7", "6:7: case.parts[1]: expected a mapping, found 7"),
            ("false", "0", "5:21: case.parts[0].mask[0][1]: expected true or false, found 0"),
            (
                "[[true, false]]",
                "[[true, false], [true]]",
                "5:29: case.parts[0].mask[1]: expected 2 items, as in the first list, found 1",
            ),
            (
                second,
                "- losses: [[1.0]]\n      losses: [[2.0]]",
                "6:7: case.parts[1]: the key `losses` is given twice",
            ),
            ("steps: 3\n", "steps: 3\n  parts: 7\n", "2:3: case: the key `parts` is given twice"),
        ] {
            assert_eq!(read(&TEXT.replacen(from, to, 1)).unwrap_err(), format!("file:{expected}"));
        }
        let number = "case:\n  steps: 3\n  parts: 7\n  rate: 0.5\n";
        assert_eq!(read(number).unwrap_err(), "file:3:10: case.parts: expected a list, found 7");
    }
}
