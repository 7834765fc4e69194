//! Texts as they are compared: normalised, hashed, and what an answer says when its form is left
//! out.

use unicode_normalization::UnicodeNormalization;

/// The 128-bit FNV-1a hash of some text. Not for enemies: two texts of one data set have the same
/// one by accident only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Hash(u128);

impl Hash {
    /// The hash of nothing.
    pub(super) const EMPTY: Hash = Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);

    /// The hash of what was hashed and of these bytes behind it.
    pub(super) fn bytes(self, bytes: &[u8]) -> Hash {
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        Hash(bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME)))
    }

    /// The hash of what was hashed and of a text behind it, whose case and white space do not
    /// count.
    pub(super) fn text(self, text: &str) -> Hash {
        // The last byte makes `a`, `bc` another text than `ab`, `c`.
        self.bytes(normalised(text).as_bytes()).bytes(&[0xff])
    }

    /// Half of it, where many are kept.
    pub(super) fn half(self) -> u64 {
        (self.0 ^ (self.0 >> 64)) as u64
    }
}

/// A text in NFC and lower case, with single spaces.
pub(super) fn normalised(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => text.nfc().flat_map(char::to_lowercase).collect(),
    }
}

/// A short name as it is, to be shown: what is no name may be anything that stands in a row.
pub(super) fn shown_name(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':');
    let is_name = text.chars().all(is_plain) && text.chars().nth(LONGEST_NAME).is_none();
    if is_name { text.to_owned() } else { "…".to_owned() }
}

/// Longer names are none.
const LONGEST_NAME: usize = 48;

/// The mark before the final answer in GSM8K.
const FINAL: &str = "####";

/// Longer answers are texts whose wording is free: two of them may say the same.
const SHORT_ANSWER: usize = 100;

/// Whether a text holds more than the answer: a mark before it, a box or a tag around it.
pub(super) fn has_answer_mark(text: &str) -> bool {
    text.contains(FINAL) || text.contains("\\boxed{") || text.to_lowercase().contains("<answer>")
}

/// What is inside the last `\boxed{…}` of a text.
fn boxed(text: &str) -> Option<&str> {
    const BOX: &str = "\\boxed{";
    let inside = &text[text.rfind(BOX)? + BOX.len()..];
    let mut depth = 1;
    let end = inside.char_indices().find(|(_, c)| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0
    });
    end.map(|(end, _)| &inside[..end])
}

/// The answer without the way to it, where a mark tells them apart.
pub(super) fn final_answer(text: &str) -> &str {
    let after = |mark: &str| text.rfind(mark).map(|at| text[at + mark.len()..].trim());
    after(FINAL).or_else(|| boxed(text)).unwrap_or(text).trim()
}

/// The number that an answer is: `1,234`, `$5`, `3/4`, `50%`, `-2.0`.
pub(super) fn as_number(text: &str) -> Option<f64> {
    if text.len() > 40 {
        return None;
    }
    let bare: String = text.chars().filter(|c| !matches!(c, ',' | '$' | '%' | ' ')).collect();
    let plain = |part: &str| {
        let is_digit = part.contains(|c: char| c.is_ascii_digit());
        part.parse::<f64>().ok().filter(|number| is_digit && number.is_finite())
    };
    match bare.split_once('/') {
        Some((over, under)) => Some(plain(over)? / plain(under).filter(|under| *under != 0.0)?),
        None => plain(bare.strip_suffix('.').unwrap_or(&bare)),
    }
}

/// An answer with its form left out, so that two of one prompt can be held against each other;
/// `None` where its wording is free.
pub(super) fn canonical(answer: &str) -> Option<String> {
    let last = final_answer(answer);
    if last.is_empty() || last.chars().nth(SHORT_ANSWER).is_some() || last.contains('\n') {
        return None;
    }
    let mut text = normalised(last);
    for (form, plain) in [
        ("\\dfrac", "\\frac"),
        ("\\tfrac", "\\frac"),
        ("\\left", ""),
        ("\\right", ""),
        ("\\!", ""),
        ("\\,", ""),
        ("\\$", ""),
        ("$", ""),
        ("^\\circ", ""),
        ("\\%", "%"),
        ("\\text", ""),
        (" ", ""),
    ] {
        text = text.replace(form, plain);
    }
    let text = fraction(&text).unwrap_or(text);
    let text = text.trim_end_matches('.').trim_matches(['{', '}', '"', '\'']);
    Some(as_number(text).map_or_else(|| text.to_owned(), |number| number.to_string()))
}

/// `\frac{a}{b}` as `a/b`.
fn fraction(text: &str) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (over, under) = rest.strip_prefix("\\frac{")?.strip_suffix('}')?.split_once("}{")?;
    Some(format!("{sign}{over}/{under}"))
}

/// About how many tokens a text has: four characters each, and one and a half where a character is
/// a word. White space in a row is one character: tokenizers have tokens for it.
pub(super) fn estimated_tokens(text: &str) -> usize {
    let (mut wide, mut narrow) = (0_usize, 0_usize);
    for word in text.split_whitespace() {
        for c in word.chars() {
            match u32::from(c) {
                0x2e80..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x20000..=0x3ffff => {
                    wide += 1
                }
                _ => narrow += 1,
            }
        }
        // And the space behind it.
        narrow += 1;
    }
    narrow.saturating_sub(1) / 4 + wide * 2 / 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_white_space_do_not_count() {
        let one = Hash::EMPTY.text(" What  is\n2+2? ");
        assert_eq!(one, Hash::EMPTY.text("what is 2+2?"));
        assert_ne!(one, Hash::EMPTY.text("what is 2+3?"));
        assert_ne!(Hash::EMPTY.text("a").text("bc"), Hash::EMPTY.text("ab").text("c"));
        // é as one character, and as a letter with an accent.
        assert_eq!(normalised("Caf\u{e9}"), normalised("Cafe\u{301}"));
    }

    #[test]
    fn forms_of_one_answer_are_one() {
        let same = [
            ("1,000", "1000.0"),
            ("\\frac{1}{2}", "0.5"),
            ("$\\dfrac{1}{2}$", "1/2"),
            ("so 6 * 7\n#### 42", "\\boxed{42}"),
            ("Paris.", "paris"),
            ("-\\frac{1}{4}", "-0.25"),
        ];
        for (one, other) in same {
            assert_eq!(canonical(one), canonical(other), "{one} {other}");
        }
        assert_ne!(canonical("x+1"), canonical("x-1"));
        assert_eq!(canonical("first line\nsecond line"), None);
    }

    #[test]
    fn numbers_are_told_from_words() {
        let number = |text| as_number(text).is_some();
        assert!(["42", "-1.5", "$1,200", "50%", "3/4", "18."].into_iter().all(number));
        assert!(!["inf", "nan", "", "x", "3/0", "A", "1 apple"].into_iter().any(number));
    }

    #[test]
    fn tokens_are_guessed_low() {
        assert_eq!(estimated_tokens("four char per token!"), 5);
        assert_eq!(estimated_tokens("数学题目"), 2);
        assert_eq!(estimated_tokens("a                b"), 0);
    }
}
