//! `${a.b}` inside of a configuration, resolved from its own fields.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::layer::Field;
use crate::settings::{Library, fields};

/// References to references beyond this are not followed.
const DEEPEST: usize = 12;

/// More look-ups than this are not made for one configuration.
const MOST_LOOKUPS: usize = 200_000;

/// Longer texts are not put together.
const LONGEST: usize = 1 << 14;

/// What references are looked up in.
pub(super) struct Scope<'a> {
    pub(super) fields: &'a BTreeMap<String, Field>,
    pub(super) library: Option<Library>,
    pub(super) call: Option<&'a str>,
    /// Whether fields that are not there have their defaults.
    pub(super) is_complete: bool,
    lookups: usize,
}

/// What a reference comes to.
enum Found {
    Is(Json),
    Missing,
    Unknown,
}

impl<'a> Scope<'a> {
    pub(super) fn new(
        fields: &'a BTreeMap<String, Field>,
        library: Option<Library>,
        call: Option<&'a str>,
        is_complete: bool,
    ) -> Scope<'a> {
        Scope { fields, library, call, is_complete, lookups: 0 }
    }

    /// The value of a field with its references resolved; none where one of them cannot be.
    pub(super) fn resolved(&mut self, name: &str, json: &Json) -> Option<Json> {
        self.json(name, json, 0)
    }

    fn json(&mut self, name: &str, json: &Json, depth: usize) -> Option<Json> {
        if depth > DEEPEST {
            return None;
        }
        match json {
            Json::String(text) if text.contains("${") => self.text(name, text, depth),
            Json::Array(items) => {
                let items = items.iter().map(|item| self.json(name, item, depth + 1));
                Some(Json::Array(items.collect::<Option<_>>()?))
            }
            other => Some(other.clone()),
        }
    }

    /// A text with references: the value itself where it is one reference, else a text.
    fn text(&mut self, name: &str, text: &str, depth: usize) -> Option<Json> {
        let mut whole = String::new();
        let mut rest = text;
        while let Some(begin) = rest.find("${") {
            let end = closing(&rest[begin..])? + begin;
            let value = self.reference(name, &rest[begin + 2..end], depth)?;
            if begin == 0 && whole.is_empty() && end + 1 == rest.len() {
                return Some(value);
            }
            whole.push_str(&rest[..begin]);
            match value {
                Json::String(text) => whole.push_str(&text),
                other => whole.push_str(&other.to_string()),
            }
            if whole.len() > LONGEST {
                return None;
            }
            rest = &rest[end + 1..];
        }
        whole.push_str(rest);
        Some(Json::String(whole))
    }

    /// What stands between the braces.
    fn reference(&mut self, name: &str, inside: &str, depth: usize) -> Option<Json> {
        let inside = inside.trim();
        let Some((function, arguments)) = inside.split_once(':') else {
            return match self.find(name, inside, depth) {
                Found::Is(value) => Some(value),
                Found::Missing | Found::Unknown => None,
            };
        };
        let arguments = split(arguments);
        match function {
            "oc.select" => match (self.find(name, arguments.first()?, depth), arguments.get(1)) {
                (Found::Is(value), _) => Some(value),
                (Found::Missing, Some(default)) => self.argument(name, default, depth),
                (Found::Missing, None) => Some(Json::Null),
                (Found::Unknown, _) => None,
            },
            "oc.env" => self.argument(name, arguments.get(1)?, depth),
            "mul" | "div" | "add" | "sub" => self.arithmetic(name, function, &arguments, depth),
            _ => None,
        }
    }

    fn arithmetic(
        &mut self,
        name: &str,
        function: &str,
        arguments: &[&str],
        depth: usize,
    ) -> Option<Json> {
        let numbers: Option<Vec<f64>> = arguments
            .iter()
            .map(|argument| self.argument(name, argument, depth)?.as_f64())
            .collect();
        let combine = |a: f64, b: f64| match function {
            "mul" => a * b,
            "div" => a / b,
            "add" => a + b,
            _ => a - b,
        };
        let x = numbers?.into_iter().reduce(combine)?;
        let whole = x.fract() == 0.0 && x.abs() < 9e15;
        if whole {
            Some(Json::from(x as i64))
        } else {
            serde_json::Number::from_f64(x).map(Json::Number)
        }
    }

    /// An argument of a function: a reference again, or a value.
    fn argument(&mut self, name: &str, text: &str, depth: usize) -> Option<Json> {
        self.json(name, &super::overrides::value(text), depth + 1)
    }

    fn find(&mut self, name: &str, reference: &str, depth: usize) -> Found {
        self.lookups += 1;
        if self.lookups > MOST_LOOKUPS || depth > DEEPEST {
            return Found::Unknown;
        }
        let Some(path) = absolute(name, reference.trim()) else { return Found::Unknown };
        // What it refers to may itself be in the tree that a reference stands for.
        if let Some(field) = self.fields.get(&path) {
            let Some(json) = field.json.clone() else { return Found::Unknown };
            return self.json(&path, &json, depth + 1).map_or(Found::Unknown, Found::Is);
        }
        let below = format!("{path}.");
        let mut inside = self.fields.range(below.clone()..);
        if inside.next().is_some_and(|(name, _)| name.starts_with(&below)) || !self.is_complete {
            return Found::Unknown;
        }
        let default = |library| fields::default(library, self.call, &path);
        self.library.and_then(default).map_or(Found::Missing, |json| Found::Is(json.clone()))
    }
}

/// Where the brace closes that the text begins with.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' if open <= 1 => return Some(at),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// The arguments of a function, split at commas outside of braces.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut open) = (Vec::new(), 0, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' | b'[' => open += 1,
            b'}' | b']' => open = open.saturating_sub(1),
            b',' if open == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

/// `.x` beside the field itself, `..x` one mapping further out.
fn absolute(name: &str, reference: &str) -> Option<String> {
    let plain = reference.trim_start_matches('.');
    let up = reference.len() - plain.len();
    let is_path = |c: char| c.is_alphanumeric() || "_.-@/".contains(c);
    if plain.is_empty() || !plain.chars().all(is_path) {
        return None;
    }
    if up == 0 {
        return Some(plain.to_owned());
    }
    let parts: Vec<&str> = name.split('.').collect();
    let kept = parts.len().checked_sub(up)?;
    Some(parts[..kept].iter().copied().chain([plain]).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::Origin;
    use crate::settings::formats::layer::How;

    fn field(name: &str, json: Json) -> (String, Field) {
        let name = name.to_owned();
        (name.clone(), Field { name, json: Some(json), origin: Origin::Flag, how: How::Set })
    }

    #[test]
    fn references_are_resolved_from_the_other_fields() {
        let fields: BTreeMap<_, _> = [
            field("a.b", json!(8)),
            field("a.c", json!("${a.b}")),
            field("a.text", json!("n${a.b}-${.c}")),
            field("x.self", json!("${x.self}")),
            field("x.y.z", json!(1)),
            field("d.none", json!(null)),
        ]
        .into();
        let mut scope = Scope::new(&fields, Some(Library::Verl), None, true);
        for (text, json) in [
            ("${a.b}", Some(json!(8))),
            ("${a.c}", Some(json!(8))),
            ("${.b}", Some(json!(8))),
            ("${..x.y.z}", Some(json!(1))),
            ("${a.text}", Some(json!("n8-8"))),
            ("${d.none}", Some(json!(null))),
            ("${oc.select:a.b,1}", Some(json!(8))),
            ("${oc.select:no.such,1}", Some(json!(1))),
            ("${oc.select:no.such,null}", Some(json!(null))),
            ("${oc.select:no.such,${a.b}}", Some(json!(8))),
            ("${oc.select:no.such}", Some(json!(null))),
            ("${oc.env:HOME,/x}", Some(json!("/x"))),
            ("${oc.env:HOME}", None),
            ("${mul:${a.b}, 4}", Some(json!(32))),
            ("${div:${a.b}, 16}", Some(json!(0.5))),
            ("${x.self}", None),
            ("${x.y}", None),
            ("${no.such}", None),
            ("${unknown:1}", None),
            ("${", None),
            ("${a.b", None),
            ("$a", Some(json!("$a"))),
        ] {
            assert_eq!(scope.resolved("a.here", &json!(text)), json, "{text}");
        }
        assert_eq!(scope.resolved("a.l", &json!(["${a.b}", 1])), Some(json!([8, 1])));
    }

    #[test]
    fn references_to_many_references_end() {
        let fields: BTreeMap<_, _> = (0..40)
            .map(|at| field(&format!("f{at}"), json!(format!("${{f{}}}", at + 1).repeat(20))))
            .collect();
        let mut scope = Scope::new(&fields, None, None, true);
        assert_eq!(scope.resolved("g", &json!("${f0}")), None);
    }
}
