//! What a text without quotes is: nothing, true or false, a number, or else a text.

use std::num::ParseIntError;

use serde::de::Visitor;

use super::failed::Failed;

/// A text of a document.
#[derive(Clone, Copy)]
pub(super) struct Scalar<'de> {
    pub(super) text: &'de str,
    pub(super) plain: bool,
}

impl<'de> Scalar<'de> {
    /// Nothing at all, which is an empty list or mapping too.
    pub(super) fn is_empty(self) -> bool {
        self.plain && self.text.is_empty()
    }

    pub(super) fn is_null(self) -> bool {
        self.plain && is_null(self.text)
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

    /// Gives it to a visitor as what it looks like.
    pub(super) fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        if !self.plain {
            visitor.visit_borrowed_str(self.text)
        } else if self.is_null() {
            visitor.visit_unit()
        } else if let Some(flag) = self.bool() {
            visitor.visit_bool(flag)
        } else {
            self.visit_number(visitor)
        }
    }

    fn visit_number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let text = self.text;
        if let Some(x) = integer(text, u64::from_str_radix) {
            visitor.visit_u64(x)
        } else if let Some(x) = integer(text, i64::from_str_radix) {
            visitor.visit_i64(x)
        } else if let Some(x) = integer(text, u128::from_str_radix) {
            visitor.visit_u128(x)
        } else if let Some(x) = integer(text, i128::from_str_radix) {
            visitor.visit_i128(x)
        } else if let Some(x) = float(text).filter(|_| !has_leading_zero(text)) {
            visitor.visit_f64(x)
        } else {
            visitor.visit_borrowed_str(text)
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "null" | "Null" | "NULL" | "~")
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
