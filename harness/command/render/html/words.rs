//! Texts and numbers in the page: nothing invisible, and code between backticks as code.

use maud::{Markup, html};

use shakedown_core::value::text::unquoted;

/// A sentence or more, what stands between backticks as code.
pub(crate) fn prose(text: &str) -> Markup {
    let text = unquoted(text);
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (index, part) in parts.iter().enumerate() {
            @if index % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

/// Names with commas between, each as code.
pub(crate) fn names(names: &[String]) -> Markup {
    html! {
        @for (index, name) in names.iter().enumerate() {
            @if index > 0 { ", " }
            code { (unquoted(name)) }
        }
    }
}

/// A count with its digits in groups of three: `12 345`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds for people.
pub(crate) fn time(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_make_code_only_in_pairs() {
        assert_eq!(prose("a `b<` c").into_string(), "a <code>b&lt;</code> c");
        assert_eq!(prose("a ` c").into_string(), "a ` c");
    }

    #[test]
    fn counts_and_times_are_easy_to_read() {
        assert_eq!(
            [7, 1234, 1_234_567].map(thousands),
            ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]
        );
        assert_eq!([7, 1234, 61_000].map(time), ["7 ms", "1.2 s", "1 min 1 s"]);
    }
}
