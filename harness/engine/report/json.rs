//! Values as JSON.

use serde_json::Value as Json;

use shakedown_core::value::record::{AnyRecord, Branch, Tree, Value, tree};

/// A record as a JSON object.
pub fn json(record: &dyn AnyRecord) -> Json {
    branch_json(tree(record))
}

fn branch_json(branch: Branch) -> Json {
    let fields = branch.into_iter().map(|(name, tree)| {
        let json = match tree {
            Tree::Value(Value::Float(array)) => nested_json(array.view(), &|x| json_float(*x)),
            Tree::Value(Value::Int(array)) => nested_json(array.view(), &|x| (*x).into()),
            Tree::Value(Value::Bool(array)) => nested_json(array.view(), &|x| (*x).into()),
            Tree::Value(Value::Text(array)) => nested_json(array.view(), &|x| x.clone().into()),
            Tree::List(items) => items.into_iter().map(branch_json).collect(),
        };
        (name.to_owned(), json)
    });
    Json::Object(fields.collect())
}

pub(crate) fn nested_json<T>(
    array: ndarray::ArrayViewD<'_, T>,
    element: &dyn Fn(&T) -> Json,
) -> Json {
    match array.ndim() {
        0 => element(array.first().expect("an array of dimension 0 has one element")),
        _ => array.outer_iter().map(|part| nested_json(part, element)).collect(),
    }
}

/// A float for JSON, which has no word for NaN and infinities: they become strings.
pub(crate) fn json_float(x: f64) -> serde_json::Value {
    match serde_json::Number::from_f64(x) {
        Some(number) => number.into(),
        None if x.is_nan() => "NaN".into(),
        None if x > 0.0 => "Infinity".into(),
        None => "-Infinity".into(),
    }
}
