//! Functions of one text: what somebody makes of it before or after it is read.

/// A function of one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    Empty,
    Null,
    Trimmed,
    TrimmedStart,
    TrimmedEnd,
    TrimmedOfSpaces,
    TrimmedOfLineEnds,
    TrimmedOfQuotes,
    TrimmedOfStars,
    TrimmedOfDollars,
    Lower,
    Upper,
    FirstLine,
    LastLine,
    FirstParagraph,
    FirstWord,
    LastWord,
    FirstNumber,
    LastNumber,
    AsNumber,
    WithoutUnit,
    WithoutFirst,
    WithoutLast,
    WithoutSign,
    WithoutPlus,
    WithoutSpaces,
    WithoutBlanks,
    WithoutLineEnds,
    LineEndsToSpaces,
    LinesTrimmed,
    WithoutCommas,
    WithoutDollars,
    WithoutDollarsAndCommas,
    WithoutPercent,
    WithoutPoint,
    WithoutPunctuation,
    Unescaped,
    Unwrapped,
    Digits,
    Letters,
    AfterThink,
    /// So many characters from its begin.
    First(usize),
    /// So many characters before its end.
    Last(usize),
}

impl Text {
    /// All without a number.
    pub(crate) const ALL: [Text; 41] = [
        Text::Empty,
        Text::Null,
        Text::Trimmed,
        Text::TrimmedStart,
        Text::TrimmedEnd,
        Text::TrimmedOfSpaces,
        Text::TrimmedOfLineEnds,
        Text::TrimmedOfQuotes,
        Text::TrimmedOfStars,
        Text::TrimmedOfDollars,
        Text::Lower,
        Text::Upper,
        Text::FirstLine,
        Text::LastLine,
        Text::FirstParagraph,
        Text::FirstWord,
        Text::LastWord,
        Text::FirstNumber,
        Text::LastNumber,
        Text::AsNumber,
        Text::WithoutUnit,
        Text::WithoutFirst,
        Text::WithoutLast,
        Text::WithoutSign,
        Text::WithoutPlus,
        Text::WithoutSpaces,
        Text::WithoutBlanks,
        Text::WithoutLineEnds,
        Text::LineEndsToSpaces,
        Text::LinesTrimmed,
        Text::WithoutCommas,
        Text::WithoutDollars,
        Text::WithoutDollarsAndCommas,
        Text::WithoutPercent,
        Text::WithoutPoint,
        Text::WithoutPunctuation,
        Text::Unescaped,
        Text::Unwrapped,
        Text::Digits,
        Text::Letters,
        Text::AfterThink,
    ];

    /// What is said of it: "as if the input `x` were …".
    pub(crate) fn told(self) -> String {
        let told = match self {
            Text::Empty => "empty",
            Text::Null => "null",
            Text::Trimmed => "without the white space around it",
            Text::TrimmedStart => "without the white space before it",
            Text::TrimmedEnd => "without the white space after it",
            Text::TrimmedOfSpaces => "without the spaces around it, line ends staying",
            Text::TrimmedOfLineEnds => "without the line ends around it, spaces staying",
            Text::TrimmedOfQuotes => "without the quotes around it",
            Text::TrimmedOfStars => "without the stars around it",
            Text::TrimmedOfDollars => "without the dollars around it",
            Text::Lower => "in lower case",
            Text::Upper => "in upper case",
            Text::FirstLine => "its first line",
            Text::LastLine => "its last line",
            Text::FirstParagraph => "its first paragraph",
            Text::FirstWord => "its first word",
            Text::LastWord => "its last word",
            Text::FirstNumber => "the first number in it, null without one",
            Text::LastNumber => "the last number in it, null without one",
            Text::AsNumber => "the number that it is, written anew",
            Text::WithoutUnit => "the number that it begins with, without what follows",
            Text::WithoutFirst => "without its first character",
            Text::WithoutLast => "without its last character",
            Text::WithoutSign => "without its sign",
            Text::WithoutPlus => "without the plus before it",
            Text::WithoutSpaces => "without white space",
            Text::WithoutBlanks => "without spaces, line ends staying",
            Text::WithoutLineEnds => "without line ends",
            Text::LineEndsToSpaces => "with spaces in place of line ends",
            Text::LinesTrimmed => "without the white space around each of its lines",
            Text::WithoutCommas => "without commas",
            Text::WithoutDollars => "without dollars",
            Text::WithoutDollarsAndCommas => "without dollars and commas",
            Text::WithoutPercent => "without percent signs",
            Text::WithoutPoint => "without the full stop at its end",
            Text::WithoutPunctuation => "without punctuation",
            Text::Unescaped => "with the entities of HTML as what they stand for",
            Text::Unwrapped => "what stands in its `\\text{…}`",
            Text::Digits => "its digits",
            Text::Letters => "its letters and digits",
            Text::AfterThink => "what follows its last `</think>`",
            Text::First(count) => return format!("cut to its first {count} characters"),
            Text::Last(count) => return format!("cut to its last {count} characters"),
        };
        told.to_owned()
    }

    pub(crate) fn of(self, text: &str) -> Option<String> {
        let without = |gone: &dyn Fn(char) -> bool| text.chars().filter(|c| !gone(*c)).collect();
        let joined =
            |lines: &mut dyn Iterator<Item = &str>, by: &str| lines.collect::<Vec<&str>>().join(by);
        let whole = || text.to_owned();
        Some(match self {
            Text::Null => return None,
            Text::Empty => String::new(),
            Text::Trimmed => text.trim().to_owned(),
            Text::TrimmedStart => text.trim_start().to_owned(),
            Text::TrimmedEnd => text.trim_end().to_owned(),
            Text::TrimmedOfSpaces => text.trim_matches(' ').to_owned(),
            Text::TrimmedOfLineEnds => text.trim_matches('\n').to_owned(),
            Text::TrimmedOfQuotes => text.trim_matches(['"', '\'']).to_owned(),
            Text::TrimmedOfStars => text.trim_matches('*').to_owned(),
            Text::TrimmedOfDollars => text.trim_matches('$').to_owned(),
            Text::Lower => text.to_lowercase(),
            Text::Upper => text.to_uppercase(),
            Text::FirstLine => text.lines().next().unwrap_or("").to_owned(),
            Text::LastLine => text.lines().last().unwrap_or("").to_owned(),
            Text::FirstParagraph => text.split("\n\n").next().unwrap_or("").to_owned(),
            Text::FirstWord => text.split_whitespace().next().unwrap_or("").to_owned(),
            Text::LastWord => text.split_whitespace().last().unwrap_or("").to_owned(),
            Text::FirstNumber => return numbers(text).first().map(|one| (*one).to_owned()),
            Text::LastNumber => return numbers(text).last().map(|one| (*one).to_owned()),
            Text::AsNumber => text.parse::<f64>().map_or_else(|_| whole(), |x| x.to_string()),
            Text::WithoutUnit => match numbers(text)[..] {
                [only] if text.starts_with(only) => only.to_owned(),
                _ => whole(),
            },
            Text::WithoutFirst => text.chars().skip(1).collect(),
            Text::WithoutLast => {
                let mut chars = text.chars();
                chars.next_back();
                chars.as_str().to_owned()
            }
            Text::WithoutSign => text.trim_start_matches(['-', '+']).to_owned(),
            Text::WithoutPlus => text.trim_start_matches('+').to_owned(),
            Text::WithoutSpaces => without(&char::is_whitespace),
            Text::WithoutBlanks => without(&|c| c == ' '),
            Text::WithoutLineEnds => without(&|c| c == '\n'),
            Text::LineEndsToSpaces => text.replace('\n', " "),
            Text::LinesTrimmed => joined(&mut text.lines().map(str::trim), "\n"),
            Text::WithoutCommas => without(&|c| c == ','),
            Text::WithoutDollars => without(&|c| c == '$'),
            Text::WithoutDollarsAndCommas => without(&|c| matches!(c, '$' | ',')),
            Text::WithoutPercent => without(&|c| c == '%'),
            Text::WithoutPoint => text.trim_end_matches('.').to_owned(),
            Text::WithoutPunctuation => without(&|c| c.is_ascii_punctuation()),
            Text::Unescaped => text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"),
            Text::Unwrapped => {
                let inner = text.strip_prefix("\\text{").and_then(|rest| rest.strip_suffix('}'));
                inner.unwrap_or(text).to_owned()
            }
            Text::Digits => without(&|c| !c.is_ascii_digit()),
            Text::Letters => without(&|c| !c.is_alphanumeric()),
            Text::AfterThink => {
                text.rsplit_once("</think>").map_or(text, |(_, rest)| rest).to_owned()
            }
            Text::First(count) => text.chars().take(count).collect(),
            Text::Last(count) => {
                let skipped = text.chars().count().saturating_sub(count);
                text.chars().skip(skipped).collect()
            }
        })
    }
}

/// The numbers in a text: digits, with a minus before them and a point among them.
fn numbers(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        at += 1;
        if is_digit(from) || (bytes[from] == b'-' && is_digit(at)) {
            while is_digit(at) || (bytes.get(at) == Some(&b'.') && is_digit(at + 1)) {
                at += 1;
            }
            found.push(&text[from..at]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_a_sign_and_a_point_but_does_not_end_in_one() {
        assert_eq!(numbers("so -3, 4.50 and 7. é-1-2"), ["-3", "4.50", "7", "-1", "-2"]);
        assert_eq!(numbers("- . é"), [""; 0]);
    }

    #[test]
    fn every_function_is_told_in_its_own_words() {
        let mut told: Vec<String> = Text::ALL.into_iter().map(Text::told).collect();
        told.sort();
        told.dedup();
        assert_eq!(told.len(), Text::ALL.len());
    }

    #[test]
    fn what_is_no_number_stays_where_numbers_are_written_anew() {
        let of = |text: Text, from| text.of(from);
        assert_eq!(of(Text::AsNumber, "5.0").as_deref(), Some("5"));
        assert_eq!(of(Text::AsNumber, "a").as_deref(), Some("a"));
        assert_eq!(of(Text::WithoutUnit, "5 km").as_deref(), Some("5"));
        assert_eq!(of(Text::WithoutUnit, "5 of 7").as_deref(), Some("5 of 7"));
        assert_eq!(of(Text::FirstNumber, "a"), None);
        assert_eq!(of(Text::Last(2), "abc").as_deref(), Some("bc"));
    }
}
