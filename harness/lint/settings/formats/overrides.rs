//! Hydra's overrides: `NAME=VALUE`, with `+` for what is added and `~` for what is taken away.

use serde_json::{Map, Value as Json};

use super::layer::{self, DEEPEST, Field, How};
use crate::settings::{Origin, fields};

/// Lists and mappings in each other beyond this are texts.
const DEEPEST_VALUE: usize = 16;

/// The name of an override and how it is meant; none where the word is none.
pub(super) fn name(word: &str) -> Option<(&str, How, &str)> {
    let (word, how) = match word.as_bytes() {
        [b'+', b'+', ..] => (&word[2..], How::Added),
        [b'+', ..] => (&word[1..], How::Added),
        [b'~', ..] => (&word[1..], How::Deleted),
        _ => (word, How::Set),
    };
    let (name, value) = match word.split_once('=') {
        Some(parts) => parts,
        None if how == How::Deleted => (word, ""),
        None => return None,
    };
    let is_letter = |c: char| c.is_alphanumeric() || "_.-/@:".contains(c);
    let begins = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (begins && name.chars().all(is_letter)).then_some((name, how, value))
}

/// What a word sets; none where it is no override. A mapping sets all that is in it.
pub(super) fn one(word: &str, origin: Origin) -> Option<Vec<Field>> {
    let (name, how, text) = name(word)?;
    let json = value(text);
    if let (Json::Object(map), How::Set | How::Added) = (&json, how)
        && !map.is_empty()
    {
        let inside = layer::flatten(map, DEEPEST, &|_| origin.clone()).ok()?;
        let named = |field: Field| Field { name: format!("{name}.{}", field.name), how, ..field };
        return Some(inside.into_iter().map(named).collect());
    }
    Some(vec![Field { name: name.to_owned(), json: Some(json), origin, how }])
}

/// A value as hydra reads it: quoted, a list, a mapping, or what it looks like.
pub(super) fn value(text: &str) -> Json {
    let text = text.trim();
    let mut reader = Reader { text, at: 0 };
    match reader.value(0) {
        Some(json) if reader.at == text.len() => json,
        _ => fields::scalar(text),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Goes over a mark, if it stands here.
    fn takes(&mut self, mark: char) -> bool {
        self.skip_spaces();
        let is_here = self.rest().starts_with(mark);
        self.at += if is_here { mark.len_utf8() } else { 0 };
        is_here
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        self.skip_spaces();
        if depth > DEEPEST_VALUE {
            return None;
        }
        let first = self.rest().chars().next();
        match first {
            Some('[') => self.list(depth),
            Some('{') => self.map(depth),
            Some(quote @ ('\'' | '"')) => self.quoted(quote).map(Json::String),
            _ => {
                let ends: &[char] = if depth == 0 { &[] } else { &[',', ']', '}', ':'] };
                Some(fields::scalar(self.word(ends)))
            }
        }
    }

    /// All up to one of these marks, interpolations whole.
    fn word(&mut self, ends: &[char]) -> &str {
        let begin = self.at;
        let mut open = 0_usize;
        let mut length = 0;
        let rest = &self.text[begin..];
        for (at, c) in rest.char_indices() {
            match c {
                '{' if rest[..at].ends_with('$') => open += 1,
                '}' if open > 0 => open -= 1,
                _ if open == 0 && ends.contains(&c) => break,
                _ => {}
            }
            length = at + c.len_utf8();
        }
        self.at = begin + length;
        self.text[begin..self.at].trim()
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        self.at += 1;
        let mut text = String::new();
        let mut escaped = false;
        for (at, c) in self.text[self.at..].char_indices() {
            match c {
                _ if escaped => {
                    text.extend((c != quote && c != '\\').then_some('\\'));
                    text.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                c if c == quote => {
                    self.at += at + 1;
                    return Some(text);
                }
                c => text.push(c),
            }
        }
        None
    }

    fn list(&mut self, depth: usize) -> Option<Json> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.takes(']') {
            items.push(self.value(depth + 1)?);
            self.skip_spaces();
            if !self.takes(',') && !self.rest().starts_with(']') {
                return None;
            }
        }
        Some(Json::Array(items))
    }

    fn map(&mut self, depth: usize) -> Option<Json> {
        self.at += 1;
        let mut map = Map::new();
        while !self.takes('}') {
            let key = match self.value(depth + 1)? {
                Json::String(key) => key,
                other => other.to_string(),
            };
            if !self.takes(':') {
                return None;
            }
            map.insert(key, self.value(depth + 1)?);
            self.skip_spaces();
            if !self.takes(',') && !self.rest().starts_with('}') {
                return None;
            }
        }
        Some(Json::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_what_hydra_makes_of_them() {
        for (text, json) in [
            ("8", json!(8)),
            ("1e-6", json!(1e-6)),
            ("True", json!(true)),
            ("null", json!(null)),
            ("None", json!("None")),
            ("", json!("")),
            ("low_var_kl", json!("low_var_kl")),
            ("['console','wandb']", json!(["console", "wandb"])),
            ("[\"a\", b, 1]", json!(["a", "b", 1])),
            ("[]", json!([])),
            ("{a:1,b:{c:x}}", json!({"a": 1, "b": {"c": "x"}})),
            ("[${a.b}, 2]", json!(["${a.b}", 2])),
            ("'it\\'s'", json!("it's")),
            ("[1", json!("[1")),
            ("a: b", json!("a: b")),
            ("[1] x", json!("[1] x")),
        ] {
            assert_eq!(value(text), json, "{text}");
        }
    }

    #[test]
    fn names_tell_how_they_are_meant() {
        assert_eq!(name("a.b=1"), Some(("a.b", How::Set, "1")));
        assert_eq!(name("+a.b=c=d"), Some(("a.b", How::Added, "c=d")));
        assert_eq!(name("++a=1"), Some(("a", How::Added, "1")));
        assert_eq!(name("~a.b"), Some(("a.b", How::Deleted, "")));
        assert_eq!(name("actor@x.y=z"), Some(("actor@x.y", How::Set, "z")));
        for word in ["a.b", "--a=1", "=1", "a b=1", "1=2", "+"] {
            assert_eq!(name(word), None, "{word}");
        }
    }

    #[test]
    fn a_mapping_sets_what_is_in_it() {
        let fields = one("+a.b={c:1,d:{e:2}}", Origin::Flag).unwrap();
        let names: Vec<_> = fields.iter().map(|field| (&*field.name, field.json.clone())).collect();
        assert_eq!(names, [("a.b.c", Some(json!(1))), ("a.b.d.e", Some(json!(2)))]);
        assert!(fields.iter().all(|field| field.how == How::Added));
    }
}
