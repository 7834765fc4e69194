//! What a text without quotes is: nothing, true or false, a number, or else a text.

use std::num::ParseIntError;

use serde::de::{Error as _, Unexpected, Visitor};

use super::reader::Failed;

const NULL: &str = "tag:yaml.org,2002:null";
const BOOL: &str = "tag:yaml.org,2002:bool";
const INT: &str = "tag:yaml.org,2002:int";
const FLOAT: &str = "tag:yaml.org,2002:float";

/// A text of a document.
#[derive(Clone, Copy)]
pub(super) struct Scalar<'de> {
    pub(super) text: &'de str,
    pub(super) plain: bool,
    pub(super) tag: Option<&'de str>,
}

impl<'de> Scalar<'de> {
    /// Nothing at all, which is an empty list or mapping too.
    pub(super) fn is_empty(self) -> bool {
        self.plain && self.text.is_empty()
    }

    /// Whether it is no value.
    pub(super) fn is_null(self) -> Result<bool, Failed> {
        let Scalar { text, plain, tag } = self;
        match tag {
            None => Ok(plain && (text.is_empty() || is_null(text))),
            Some(NULL) if plain && !is_null(text) => {
                Err(Failed::invalid_value(Unexpected::Str(text), &"null"))
            }
            Some(tag) => Ok(tag == NULL && plain),
        }
    }

    pub(super) fn bool(self) -> Option<bool> {
        if self.plain { bool(self.text) } else { None }
    }

    pub(super) fn unsigned(self) -> Option<u64> {
        if self.plain { integer(self.text, u64::from_str_radix) } else { None }
    }

    pub(super) fn signed(self) -> Option<i64> {
        if self.plain { integer(self.text, i64::from_str_radix) } else { None }
    }

    pub(super) fn float(self) -> Option<f64> {
        if self.plain { float(self.text) } else { None }
    }

    /// Gives it to a visitor as what it looks like, or as what its tag says.
    pub(super) fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let Scalar { text, plain, tag } = self;
        let wrong = |what: &str| Err(Failed::invalid_value(Unexpected::Str(text), &what));
        match tag {
            Some(BOOL) => bool(text).map_or_else(|| wrong("a boolean"), |x| visitor.visit_bool(x)),
            Some(INT) => visit_integer(text, visitor).unwrap_or_else(|_| wrong("an integer")),
            Some(FLOAT) => float(text).map_or_else(|| wrong("a float"), |x| visitor.visit_f64(x)),
            Some(NULL) if is_null(text) => visitor.visit_unit(),
            Some(NULL) => wrong("null"),
            tag if plain && tag.is_none_or(|tag| tag.starts_with('!')) => {
                visit_plain(text, visitor)
            }
            _ => visitor.visit_borrowed_str(text),
        }
    }
}

fn visit_plain<'de, V: Visitor<'de>>(text: &'de str, visitor: V) -> Result<V::Value, Failed> {
    if text.is_empty() || is_null(text) {
        return visitor.visit_unit();
    }
    if let Some(flag) = bool(text) {
        return visitor.visit_bool(flag);
    }
    visit_integer(text, visitor).unwrap_or_else(|visitor| match float(text) {
        Some(x) if !has_leading_zero(text) => visitor.visit_f64(x),
        _ => visitor.visit_borrowed_str(text),
    })
}

/// Gives an integer to a visitor, which comes back where the text is none.
fn visit_integer<'de, V: Visitor<'de>>(
    text: &str,
    visitor: V,
) -> Result<Result<V::Value, Failed>, V> {
    Ok(if let Some(x) = integer(text, u64::from_str_radix) {
        visitor.visit_u64(x)
    } else if let Some(x) = integer(text, i64::from_str_radix) {
        visitor.visit_i64(x)
    } else if let Some(x) = integer(text, u128::from_str_radix) {
        visitor.visit_u128(x)
    } else if let Some(x) = integer(text, i128::from_str_radix) {
        visitor.visit_i128(x)
    } else {
        return Err(visitor);
    })
}

fn is_null(text: &str) -> bool {
    matches!(text, "null" | "Null" | "NULL" | "~")
}

fn bool(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// An integer in decimal, or with `0x`, `0o` or `0b` before it.
fn integer<T>(text: &str, read: fn(&str, u32) -> Result<T, ParseIntError>) -> Option<T> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = digits.strip_prefix(prefix) {
            let signed = digits.starts_with(['+', '-']);
            return if signed { None } else { read(&format!("{sign}{digits}"), radix).ok() };
        }
    }
    if digits.starts_with(['+', '-']) || has_leading_zero(text) {
        return None;
    }
    read(if sign.is_empty() { digits } else { text }, 10).ok()
}

/// Digits after a zero are a text in YAML 1.2.
fn has_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn float(text: &str) -> Option<f64> {
    let digits = match text.strip_prefix('+') {
        Some(digits) if digits.starts_with(['+', '-']) => return None,
        Some(digits) => digits,
        None => text,
    };
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ if matches!(digits, ".inf" | ".Inf" | ".INF") => Some(f64::INFINITY),
        _ => digits.parse().ok().filter(|x: &f64| x.is_finite()),
    }
}
