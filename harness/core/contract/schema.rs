//! JSON schemas of the values that options take, each of what its type says.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use serde_json::{Value as Json, json};

use crate::contract::options::Ranged;
use crate::value::choice::Choice;

/// A type that options have, which says what its values look like.
pub trait OptionValue: Sized {
    /// The names of its values, where it has some.
    const NAMES: &'static [(&'static str, &'static str)] = &[];
    /// What is expected where a text is none of them.
    const EXPECTED: &'static str = "this option takes no text";

    /// The JSON schema of its values, draft 7.
    fn schema() -> Json;

    /// The value of a text.
    fn of_text(_: &str) -> Option<Self> {
        None
    }
}

impl<T: Choice> OptionValue for T {
    const NAMES: &'static [(&'static str, &'static str)] = T::NAMES;
    const EXPECTED: &'static str = T::EXPECTED;

    fn of_text(text: &str) -> Option<T> {
        let place = T::NAMES.iter().position(|(name, _)| *name == text)?;
        Some(T::ALL[place])
    }

    fn schema() -> Json {
        let named = |(name, meaning): &(&str, &str)| json!({"const": name, "description": meaning});
        json!({"oneOf": T::NAMES.iter().map(named).collect::<Json>()})
    }
}

impl OptionValue for bool {
    fn schema() -> Json {
        json!({"type": "boolean"})
    }
}

impl OptionValue for String {
    const EXPECTED: &'static str = "";

    fn of_text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn schema() -> Json {
        json!({"type": "string"})
    }
}

impl OptionValue for f64 {
    fn schema() -> Json {
        json!({"type": "number"})
    }
}

impl OptionValue for i64 {
    fn schema() -> Json {
        json!({"type": "integer"})
    }
}

impl OptionValue for u8 {
    fn schema() -> Json {
        json!({"type": "integer", "minimum": 0, "maximum": Self::MAX})
    }
}

impl OptionValue for u32 {
    fn schema() -> Json {
        json!({"type": "integer", "minimum": 0, "maximum": Self::MAX})
    }
}

impl<T: OptionValue> OptionValue for Option<T> {
    const NAMES: &'static [(&'static str, &'static str)] = T::NAMES;
    const EXPECTED: &'static str = T::EXPECTED;

    fn of_text(text: &str) -> Option<Option<T>> {
        T::of_text(text).map(Some)
    }

    fn schema() -> Json {
        let mut schema = T::schema();
        match schema.get_mut("type") {
            Some(kind) => *kind = json!([*kind, "null"]),
            None => schema = json!({"anyOf": [schema, {"type": "null"}]}),
        }
        schema
    }
}

impl<T: OptionValue> OptionValue for Vec<T> {
    fn schema() -> Json {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: OptionValue, const N: usize> OptionValue for [T; N] {
    fn schema() -> Json {
        json!({"type": "array", "items": T::schema(), "minItems": N, "maxItems": N})
    }
}

impl<T: OptionValue> OptionValue for BTreeMap<i64, T> {
    fn schema() -> Json {
        let key = json!({"pattern": "^-?[0-9]+$"});
        json!({"type": "object", "propertyNames": key, "additionalProperties": T::schema()})
    }
}

/// The schema of a number, or of one that may be null, with its range.
pub fn schema_within<T>(range: impl RangeBounds<T::Number>) -> Json
where
    T: OptionValue + Ranged<Number: Into<Json>>,
{
    let mut schema = T::schema();
    let ends = [
        (range.start_bound(), "minimum", "exclusiveMinimum"),
        (range.end_bound(), "maximum", "exclusiveMaximum"),
    ];
    for (end, included, excluded) in ends {
        match end {
            Bound::Included(end) => schema[included] = (*end).into(),
            Bound::Excluded(end) => schema[excluded] = (*end).into(),
            Bound::Unbounded => {}
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::options::{RowInfluence, above};

    #[test]
    fn a_schema_follows_from_the_type_and_the_range() {
        let unit = json!({"type": "number", "minimum": 0.0, "maximum": 1.0});
        assert_eq!(schema_within::<f64>(0.0..=1.0), unit);
        let null = json!({"type": ["number", "null"], "exclusiveMinimum": 1.0});
        assert_eq!(schema_within::<Option<f64>>(above(1.0)), null);
        let bit = json!({"type": "integer", "minimum": 0, "maximum": 1});
        assert_eq!(schema_within::<u8>(0..=1), bit);
        let pair = json!({"type": ["array", "null"], "items": {"type": "number"},
                          "minItems": 2, "maxItems": 2});
        assert_eq!(Option::<[f64; 2]>::schema(), pair);
    }

    #[test]
    fn a_choice_says_what_each_name_means() {
        let schema = RowInfluence::schema();
        let may = json!({"const": "batch", "description": "It may."});
        assert_eq!(schema["oneOf"][1], may);
        let or_null = json!({"anyOf": [schema, {"type": "null"}]});
        assert_eq!(Option::<RowInfluence>::schema(), or_null);
    }
}
