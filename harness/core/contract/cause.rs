//! Causes: in what way an invariant is broken, beside the message that says it to people.

use std::fmt;

use serde::{Deserialize, Serialize};

/// In what way an invariant is broken: what breaks it in another way is another bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// A number or a text is not what it should be.
    Differs,
    /// A number is NaN.
    NotANumber,
    /// A number is infinite.
    Infinite,
    /// A shape, a name or a type is not what was promised.
    Malformed,
    /// An exception: its type and message, without what changes from run to run: numbers,
    /// addresses, the order of a set.
    Raised(String),
    /// No answer: it hung or died.
    NoAnswer,
    /// An input is not the same after the call.
    ChangedInput,
}

impl Cause {
    /// What is wrong with a number that is not as it should be.
    pub fn of_number(found: f64) -> Cause {
        match found {
            x if x.is_nan() => Cause::NotANumber,
            x if x.is_infinite() => Cause::Infinite,
            _ => Cause::Differs,
        }
    }

    /// That of an exception, from its type and message: `ValueError: 3 rows`.
    pub fn raised(message: &str) -> Cause {
        let line = message.lines().next().unwrap_or("");
        let mut parts = line.split("0x");
        let mut steady = parts.next().unwrap_or("").to_owned();
        for part in parts {
            steady += "0x0";
            steady += part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        }
        let mut text = String::new();
        for c in steady.chars() {
            match c.is_ascii_digit() {
                true if text.ends_with('0') => {}
                true => text.push('0'),
                false => text.push(c),
            }
        }
        Cause::Raised(sorted_sets(&text))
    }

    /// The cause of what was read back from a file, which has the message only: the one place where
    /// a cause is read from a text. Of what is no exception it tells whether a number is finite.
    pub fn read(found: &str) -> Cause {
        let first = found.lines().next().unwrap_or("");
        if let Some(message) = first.strip_prefix("raised ") {
            return Cause::raised(message);
        }
        let given = first.split_once(", expected").map_or(first, |(given, _)| given);
        let number = given.split([' ', ',', ';']).find_map(|word| match word {
            "NaN" => Some(f64::NAN),
            "inf" | "-inf" => Some(f64::INFINITY),
            _ => None,
        });
        Cause::of_number(number.unwrap_or(0.0))
    }

    /// The exception, without its numbers: `ValueError: 0 rows`.
    pub fn exception(&self) -> Option<&str> {
        match self {
            Cause::Raised(exception) => Some(exception),
            _ => None,
        }
    }

    /// Whether every number is finite, as far as one broke the invariant.
    pub fn is_finite(&self) -> bool {
        !matches!(self, Cause::NotANumber | Cause::Infinite)
    }

    /// Whether both are of one bug, where one invariant is broken. What overflows is NaN in one
    /// case and infinite in another; what is wrong with one input often raises several exceptions.
    pub fn is_like(&self, other: &Cause) -> bool {
        match (self, other) {
            (Cause::Raised(_), Cause::Raised(_)) => true,
            _ if !self.is_finite() => !other.is_finite(),
            _ => self == other,
        }
    }
}

/// A text with the items between braces in the order of the alphabet: Python shows sets in any.
fn sorted_sets(text: &str) -> String {
    let (mut sorted, mut rest) = (String::new(), text);
    while let Some((before, inside, after)) = braces(rest) {
        let mut items: Vec<&str> = inside.split(", ").collect();
        items.sort_unstable();
        sorted += &format!("{before}{{{}}}", items.join(", "));
        rest = after;
    }
    sorted + rest
}

/// What stands before, in and after the first braces.
fn braces(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    Some((before, inside, after))
}

/// What was found where an invariant is broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// For people, both numbers in it.
    pub message: String,
    /// In what way, where whoever wrote the message said it: else the outputs tell.
    pub cause: Option<Cause>,
}

impl Found {
    /// What was found, and in what way it is wrong.
    pub fn new(message: String, cause: Cause) -> Found {
        Found { message, cause: Some(cause) }
    }

    /// In what way it is wrong.
    pub fn cause(&self) -> Cause {
        self.cause.clone().unwrap_or(Cause::Differs)
    }
}

impl From<String> for Found {
    fn from(message: String) -> Found {
        Found { message, cause: None }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_read_back_tells_its_cause() {
        for (found, cause) in [
            ("advantages[0] is 1.5, expected 1 ± 3.6e-6", Cause::Differs),
            ("advantages[0] is NaN, expected 0 ± 3.6e-6", Cause::NotANumber),
            ("group 0 sums to -inf, expected 0 ± 3.6e-6", Cause::Infinite),
            ("loss is 0.5, expected NaN ± 3.6e-6", Cause::Differs),
            ("answers[0] is \"NaN\", expected \"2\"", Cause::Differs),
            ("raised ValueError: 31 rows\n  in f", Cause::Raised("ValueError: 0 rows".to_owned())),
        ] {
            assert_eq!(Cause::read(found), cause, "{found}");
        }
    }

    #[test]
    fn what_changes_from_run_to_run_makes_no_other_exception() {
        let same = |a: &str, b: &str| assert_eq!(Cause::raised(a), Cause::raised(b));
        same("TypeError: <object at 0x7f3a9c>", "TypeError: <object at 0x7fe41bd0>");
        same("KeyError: {'b', 'a'} of 3", "KeyError: {'a', 'b'} of 17");
        same("ValueError: {1, 2}{'x'} {", "ValueError: {2, 1}{'x'} {");
        assert_ne!(Cause::raised("KeyError: {'a'}"), Cause::raised("KeyError: {'b'}"));
    }

    #[test]
    fn what_overflows_is_one_bug_and_what_differs_is_another() {
        assert!(Cause::NotANumber.is_like(&Cause::Infinite));
        assert!(Cause::raised("IndexError: 3").is_like(&Cause::raised("ValueError: 3 rows")));
        let ways = [
            Cause::Differs,
            Cause::Infinite,
            Cause::Malformed,
            Cause::raised("E: 1"),
            Cause::NoAnswer,
        ];
        for (at, one) in ways.iter().enumerate() {
            for (other_at, other) in ways.iter().enumerate() {
                assert_eq!(one.is_like(other), at == other_at, "{one:?} {other:?}");
            }
        }
    }
}
