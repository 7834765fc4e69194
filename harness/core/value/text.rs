//! How numbers and arrays are shown to people: short, exact where short is exact, never ambiguous.

use std::fmt::Write as _;

use ndarray::ArrayViewD;

use crate::value::record::{AnyRecord, Branch, Tree, Value, tree};

/// The FNV-1a hash of some bytes, of 32 bits: for names that must differ among a few thousand.
pub fn fnv1a(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A number for people: the shortest text that reads back as the same f32 where it is one, else
/// as the same f64.
pub fn number(x: f64) -> String {
    let mut text = String::new();
    write_number(&mut text, x);
    text
}

fn write_number(text: &mut String, x: f64) {
    let narrow = x as f32;
    let magnitude = x.abs();
    let plain = magnitude == 0.0 || (1e-4..1e7).contains(&magnitude);
    let _ = match (f64::from(narrow) == x, plain || !x.is_finite()) {
        (true, true) => write!(text, "{narrow}"),
        (true, false) => write!(text, "{narrow:e}"),
        (false, true) => write!(text, "{x}"),
        (false, false) => write!(text, "{x:e}"),
    };
}

/// `1 case`, `2 cases`.
pub fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A number rounded to a few digits, for statements whose last digits mean nothing.
pub fn rounded(x: f64) -> String {
    let magnitude = x.abs();
    if x == 0.0 || !x.is_finite() {
        format!("{x}")
    } else if (1e-3..1e5).contains(&magnitude) {
        let digits = (5.0 - magnitude.log10().floor()).clamp(0.0, 8.0) as usize;
        let text = format!("{x:.digits$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    } else {
        format!("{x:.2e}")
    }
}

/// Two numbers that differ, rounded where that shows the difference, else in full.
pub fn pair(found: f64, expected: f64) -> [String; 2] {
    let short = [rounded(found), rounded(expected)];
    if short[0] == short[1] && found != expected {
        [found, expected].map(|x| format!("{x}"))
    } else {
        short
    }
}

/// An array in nested brackets.
pub fn value(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Float(array) => nested(&mut text, array.view(), &|text, x| write_number(text, *x)),
        Value::Int(array) => {
            nested(&mut text, array.view(), &|text, x| text.push_str(&x.to_string()))
        }
        Value::Bool(array) => {
            nested(&mut text, array.view(), &|text, x| text.push(if *x { '1' } else { '0' }));
        }
        Value::Text(array) => nested(&mut text, array.view(), &|text, x| match x {
            Some(x) => text.push_str(&quoted(x)),
            None => text.push_str("null"),
        }),
    }
    text
}

/// How many characters of a text are shown at most, and how many of each end of a longer one.
const SHOWN: usize = 400;
const SHOWN_ENDS: usize = 120;

/// A text in quotes, with everything in it that could not be seen as an escape. A very long one
/// is cut in the middle.
pub fn quoted(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN {
        return format!("\"{}\"", visible(text));
    }
    let start: String = text.chars().take(SHOWN_ENDS).collect();
    let end: String = text.chars().skip(count - SHOWN_ENDS).collect();
    format!("\"{} … {count} characters … {}\"", visible(&start), visible(&end))
}

/// The texts in quotes that a message shows, those that are shown whole.
pub fn quoted_texts(message: &str) -> Vec<String> {
    let (mut texts, mut inside, mut chars) = (Vec::new(), None::<String>, message.chars());
    while let Some(c) = chars.next() {
        match (&mut inside, c) {
            (None, '"') => inside = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') => texts.extend(inside.take()),
            (Some(text), '\\') => match chars.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some('0') => text.push('\0'),
                Some('u') => {
                    let code: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                    text.extend(code);
                }
                other => text.extend(other),
            },
            (Some(text), c) => text.push(c),
        }
    }
    texts.retain(|text| !text.contains(" characters … "));
    texts
}

/// A text that may be null.
pub fn quoted_or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quoted)
}

/// White space but for the space, control characters, zero-width and combining characters, marks of
/// direction and U+FFFD as escapes.
fn visible(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '\'' => shown.push(c),
            '\u{fffd}' => shown.push_str("\\u{fffd}"),
            _ => shown.extend(c.escape_debug()),
        }
    }
    shown
}

/// A path as one word of a shell.
pub fn for_shell(path: &str) -> String {
    shlex::try_quote(path).map_or_else(|_| path.to_owned(), |word| word.into_owned())
}

/// A text of others that does nothing to who shows it: no escape sequence, no change of direction,
/// no command of a GitHub workflow, nothing that XML forbids.
pub fn harmless(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            harmless.push('\n');
        }
        let indent = line.len() - line.trim_start().len();
        let command = line[indent..].starts_with("::");
        for (at, c) in line.char_indices() {
            if command && at == indent {
                harmless.push('\\');
            }
            match c {
                '\t' | '\u{ad}' | '\u{200d}' => harmless.push(c),
                _ if is_active(c) => harmless.extend(c.escape_unicode()),
                _ => harmless.push(c),
            }
        }
    }
    harmless.replace("##[", "#\\#[")
}

/// Control characters, marks of direction and what is no character.
fn is_active(c: char) -> bool {
    let code = u32::from(c);
    let directs =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_none = code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code);
    c.is_control() || directs || is_none
}

/// A text without quotes, its lines as they are, with everything in it that could not be seen as an
/// escape.
pub fn unquoted(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '\n' | '"' | '\\' => shown.push(c),
            _ => shown.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
        }
    }
    shown
}

/// How many characters of what two long texts have in common are shown on either side of what
/// differs.
const AROUND: usize = 16;

/// A text without all but the nearest of what it shares with another one at both ends.
fn without_ends(text: &str, [before, after]: [usize; 2]) -> String {
    let count = text.chars().count();
    let from = if before > 2 * AROUND { before - AROUND } else { 0 };
    let to = if after > 2 * AROUND { count - after + AROUND } else { count };
    let shown: String = text.chars().skip(from).take(to - from).collect();
    let [start, end] = [from > 0, to < count].map(|cut| if cut { "…" } else { "" });
    if shown.chars().count() > SHOWN {
        return quoted(&shown);
    }
    format!("\"{start}{}{end}\"", visible(&shown))
}

/// What was found and what was expected, both in quotes, and where long ones begin to differ. Of
/// what long ones have in common at either end little is shown.
pub fn found_for(found: Option<&str>, expected: Option<&str>) -> String {
    let both = format!("{}, expected {}", quoted_or_null(found), quoted_or_null(expected));
    let (Some(found), Some(expected)) = (found, expected) else { return both };
    let whole = [found, expected];
    let same = found.chars().zip(expected.chars()).take_while(|(a, b)| a == b).count();
    let rest = |text: &str| text.chars().skip(same).collect::<String>();
    let (mut found, mut expected) = (rest(found), rest(expected));
    if found.chars().count().max(expected.chars().count()) + same < 32 {
        return both;
    }
    while let (Some(a), Some(b)) = (found.chars().last(), expected.chars().last())
        && a == b
    {
        found.pop();
        expected.pop();
    }
    let after = whole[0].chars().count() - same - found.chars().count();
    let shown = whole.map(|text| without_ends(text, [same, after]));
    format!(
        "{}, expected {}: after {same} characters {} for {}",
        shown[0],
        shown[1],
        quoted(&found),
        quoted(&expected)
    )
}

/// How many characters of a line of values are shown at most: a row of a real batch has thousands.
const LONGEST_LINE: usize = 2000;

/// A line of values, a very long one without its middle.
pub fn shortened(line: String) -> String {
    let count = line.chars().count();
    if count <= LONGEST_LINE {
        return line;
    }
    let start: String = line.chars().take(LONGEST_LINE / 4).collect();
    let end: String = line.chars().skip(count - LONGEST_LINE / 4).collect();
    format!("{start} … {} characters … {end}", count - 2 * (LONGEST_LINE / 4))
}

/// Writes an array in nested brackets, each element with `element`.
pub fn nested<T>(text: &mut String, array: ArrayViewD<'_, T>, element: &dyn Fn(&mut String, &T)) {
    // How many elements each bracket holds, the outermost first.
    let shape = array.shape();
    let sizes: Vec<usize> = (0..shape.len()).map(|axis| shape[axis..].iter().product()).collect();
    if sizes.first() == Some(&0) {
        return empty(text, shape);
    }
    for (index, x) in array.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        let starts = sizes.iter().filter(|size| index.is_multiple_of(**size));
        starts.for_each(|_| text.push('['));
        element(text, x);
        let ends = sizes.iter().filter(|size| (index + 1).is_multiple_of(**size));
        ends.for_each(|_| text.push(']'));
    }
}

/// Writes the brackets of an array without elements.
fn empty(text: &mut String, shape: &[usize]) {
    let Some((length, inner)) = shape.split_first() else { return };
    text.push('[');
    for index in 0..*length {
        text.push_str(if index > 0 { ", " } else { "" });
        empty(text, inner);
    }
    text.push(']');
}

/// The record in one line for people: `rewards [0, 1]  groups [0, 0]`, and of a list
/// `micro_batches [{token_losses [[1]], mask [[1]]}]`.
pub fn one_line(record: &dyn AnyRecord) -> String {
    branch_text(&tree(record), "  ")
}

fn branch_text(branch: &Branch, separator: &str) -> String {
    let parts = branch.iter().map(|(name, tree)| match tree {
        Tree::Value(value) => format!("{name} {}", self::value(value)),
        Tree::List(items) => {
            let items: Vec<String> =
                items.iter().map(|item| format!("{{{}}}", branch_text(item, ", "))).collect();
            format!("{name} [{}]", items.join(", "))
        }
    });
    parts.collect::<Vec<_>>().join(separator)
}

/// The bytes of a name with dashes for underscores: `zero_sum` as `zero-sum`.
#[doc(hidden)]
pub const fn bytes<const N: usize>(name: &str) -> [u8; N] {
    let mut bytes = [b'-'; N];
    let mut at = 0;
    while at < N {
        if name.as_bytes()[at] != b'_' {
            bytes[at] = name.as_bytes()[at];
        }
        at += 1;
    }
    bytes
}

/// The same bytes as a text.
#[doc(hidden)]
pub const fn dashed(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(name) => name,
        Err(_) => panic!("the name of a module is ASCII"),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn};

    use super::*;

    #[test]
    fn brackets_follow_the_shape() {
        let shown = |shape: &[usize]| {
            let count = shape.iter().product();
            let array = ArrayD::from_shape_vec(IxDyn(shape), (0..count).collect()).unwrap();
            let mut text = String::new();
            nested(&mut text, array.view(), &|text, x: &usize| text.push_str(&x.to_string()));
            text
        };
        assert_eq!(shown(&[]), "0");
        assert_eq!(shown(&[3]), "[0, 1, 2]");
        assert_eq!(shown(&[2, 2]), "[[0, 1], [2, 3]]");
        assert_eq!(shown(&[2, 1, 2]), "[[[0, 1]], [[2, 3]]]");
        assert_eq!(shown(&[0]), "[]");
        assert_eq!(shown(&[2, 0]), "[[], []]");
        assert_eq!(shown(&[0, 2]), "[]");
    }

    #[test]
    fn numbers_are_short_and_exact() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(f64::from(0.1_f32)), "0.1");
        assert_eq!(number(0.1), "0.1");
        assert_eq!(number(-0.0), "-0");
        assert_eq!(number(1e-9), "1e-9");
        assert_eq!(number(f64::NAN), "NaN");
        assert_eq!(number(f64::NEG_INFINITY), "-inf");
    }

    #[test]
    fn a_pair_shows_where_it_differs() {
        assert_eq!(pair(0.5, 0.25), ["0.5", "0.25"]);
        assert_eq!(pair(0.499_900_012, 0.499_900_01), ["0.499900012", "0.49990001"]);
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(quoted("it's <a>"), "\"it's <a>\"");
        let hidden = "\u{200b}\u{feff}\0\r\n\u{301}\u{202e}\u{fffd}\u{a0}";
        assert_eq!(quoted(hidden), r#""\u{200b}\u{feff}\0\r\n\u{301}\u{202e}\u{fffd}\u{a0}""#);
        assert_eq!(unquoted("\"a\" \\ '\n\r\u{202e}"), "\"a\" \\ '\n\\r\\u{202e}");
        let long = quoted(&"ab".repeat(300));
        assert!(long.contains("… 600 characters …") && long.chars().count() < 300, "{long}");
    }

    #[test]
    fn texts_in_quotes_are_read_back() {
        let texts = ["", "a\n\"b\" \\ '", "e\u{301}\u{fffd}\0", "答案 1"].map(str::to_owned);
        let message = format!(
            "{} scores 1, {} scores {}; {}",
            quoted(&texts[0]),
            quoted(&texts[1]),
            quoted(&texts[2]),
            quoted(&texts[3])
        );
        assert_eq!(quoted_texts(&message), texts);
        assert_eq!(quoted_texts(&quoted(&"ab".repeat(300))), [""; 0]);
    }

    #[test]
    fn long_texts_say_where_they_differ() {
        assert_eq!(found_for(Some("a"), Some("b")), "\"a\", expected \"b\"");
        assert_eq!(found_for(None, Some("b")), "null, expected \"b\"");
        let expected = "one and two and three and four and five";
        let found = expected.replace("three ", "");
        assert!(
            found_for(Some(&found), Some(expected))
                .ends_with(": after 16 characters \"\" for \"three \""),
        );
        let long = |middle: &str| format!("{}{middle}{}", "a".repeat(90), "b".repeat(500));
        let [a, b] = ["a".repeat(16), "b".repeat(16)];
        assert_eq!(
            found_for(Some(&long("1")), Some(&long("2"))),
            format!("\"…{a}1{b}…\", expected \"…{a}2{b}…\": after 90 characters \"1\" for \"2\""),
        );
    }

    #[test]
    fn rounded_numbers_keep_six_digits() {
        assert_eq!(rounded(0.866_025_403_784), "0.866025");
        assert_eq!(rounded(3e-7), "3.00e-7");
        assert_eq!(rounded(10.0), "10");
        assert_eq!(rounded(1_234.567_89), "1234.57");
    }
}
