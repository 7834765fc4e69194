//! What is remembered of the answers.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value as Json;

use super::columns::{Cells, OTHER_MEASURES, cell};
use super::hits::{Hits, Place};
use super::prompt::Prompt;
use super::prompts::{MOST_PARTS, count};
use super::text::{Hash, as_number, canonical, final_answer, has_answer_mark, normalised};

/// Longer answers are no bare ones.
const LONGEST_BARE: usize = 200;

/// A text of the solution must have so many characters to be the solution's.
const LONG_ENOUGH: usize = 30;

/// How many characters at its end stand for a worked answer.
const TAIL: usize = 60;

/// What is remembered of the answers.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By the part of the data set: rows with an answer, and those without.
    pub(super) by_source: HashMap<Hash, (u64, Hits)>,
    /// How many rows have one.
    pub(super) count: u64,
    pub(super) numbers: u64,
    /// Answers that look like values of Python: `'a'`, `[1]`, `True`.
    pub(super) literals: u64,
    /// `nan`, `n/a`.
    pub(super) placeholders: Hits,
    /// `none`, `null`: in some tasks a right answer.
    pub(super) doubtful: Hits,
    pub(super) unextracted: Hits,
    pub(super) counts: HashMap<u64, u64>,
    /// Rows whose last message is the assistant's and holds the answer.
    pub(super) told_by_the_assistant: Hits,
    /// Rows whose prompt holds the solution.
    pub(super) solution_told: Hits,
    /// By what follows `answer is`: in how many prompts that stands.
    pub(super) phrases: HashMap<Hash, u64>,
    /// By the same: the rows of which it is the answer.
    pub(super) phrase_told: HashMap<Hash, Hits>,
}

/// An answer as a text; `None` where there is none.
fn text(value: &Json) -> Option<Cow<'_, str>> {
    match value {
        Json::Null => None,
        Json::String(text) => {
            Some(text.as_str()).filter(|text| !text.trim().is_empty()).map(Cow::from)
        }
        Json::Array(values) if values.is_empty() => None,
        Json::Object(values) if values.values().all(Json::is_null) => None,
        other => Some(other.to_string().into()),
    }
}

/// Whether two answers of one prompt can be held against each other: an object of tests cannot.
fn is_plain(value: &Json) -> bool {
    match value {
        // Tests of a program are often an object, written as a text.
        Json::String(text) => !text.trim_start().starts_with(['{', '[']),
        other => !other.is_array() && !other.is_object(),
    }
}

impl Answers {
    /// Takes the answer of a row, and gives its hash where others can be held against it.
    pub(super) fn take(
        &mut self,
        row: &Cells,
        column: &str,
        prompt: Option<&Prompt<'_>>,
        source: Hash,
        place: Place,
        shows_text: bool,
    ) -> Option<u64> {
        // verl: a model scores these, the answer is not read.
        if cell(row, "reward_model.style").is_some_and(|style| style == "model") {
            return None;
        }
        let value = cell(row, column);
        let is_known = self.by_source.contains_key(&source);
        let source =
            if is_known || self.by_source.len() < MOST_PARTS { source } else { Hash::EMPTY };
        let (present, missing) = self.by_source.entry(source).or_default();
        let Some(answer) = value.and_then(text) else {
            let is_measured = |name: &&str| cell(row, name).and_then(text).is_some();
            missing.add_if(!OTHER_MEASURES.iter().any(is_measured), place);
            return None;
        };
        *present += 1;
        let shown = Some(answer.as_ref()).filter(|_| shows_text);
        self.look(&answer, place, shown);
        let plain = value.filter(|value| is_plain(value)).and_then(|_| canonical(&answer));
        let key = plain.as_deref().unwrap_or(&answer);
        *self.counts.entry(Hash::EMPTY.text(key).half()).or_default() += 1;
        if let Some(prompt) = prompt {
            self.look_into(prompt, &answer, worked(row, column, &answer), place);
        }
        plain.map(|plain| Hash::EMPTY.bytes(plain.as_bytes()).half())
    }

    fn look(&mut self, answer: &str, place: Place, shown: Option<&str>) {
        self.count += 1;
        self.numbers += u64::from(as_number(answer.trim()).is_some());
        let trimmed = answer.trim();
        let is_literal =
            trimmed.starts_with(['\'', '"', '[', '(', '{']) || matches!(trimmed, "True" | "False");
        self.literals += u64::from(is_literal);
        match trimmed.to_lowercase().as_str() {
            "nan" | "n/a" | "<na>" | "#n/a" => self.placeholders.add_text(place, shown),
            "none" | "null" => self.doubtful.add_text(place, shown),
            _ => {}
        }
        if has_answer_mark(answer) || answer.chars().nth(LONGEST_BARE).is_some() {
            self.unextracted.add_text(place, shown);
        }
    }

    fn look_into(&mut self, prompt: &Prompt<'_>, answer: &str, worked: Option<&str>, place: Place) {
        let gold = normalised(final_answer(answer));
        let last = prompt.messages.last().filter(|last| last.role == Some("assistant"));
        let told = last.is_some_and(|last| holds(&normalised(&last.texts.join(" ")), &gold));
        self.told_by_the_assistant.add_if(told, place);
        let asked = normalised(&prompt.asked());
        self.phrases(&asked, &gold, place);
        let solution = worked.map(normalised).unwrap_or_default();
        let is_told = solution.chars().nth(LONG_ENOUGH - 1).is_some()
            && (asked.contains(&solution)
                || worked.is_some_and(has_answer_mark) && asked.contains(tail(&solution)));
        self.solution_told.add_if(is_told, place);
    }

    fn phrases(&mut self, asked: &str, gold: &str, place: Place) {
        const PHRASE: &str = "answer is";
        for (at, _) in asked.match_indices(PHRASE).take(16) {
            let before = &asked[..at];
            let rest =
                asked[at + PHRASE.len()..].trim_start_matches([' ', ':', '$', '*', '"', '\'', '(']);
            let rest = rest.strip_prefix("\\boxed{").unwrap_or(rest);
            if is_supposed(before) {
                continue;
            }
            let follows: String = rest.chars().take(16).collect();
            let follows = Hash::EMPTY.bytes(follows.as_bytes());
            count(&mut self.phrases, follows);
            let is_told = !gold.is_empty() && rest.strip_prefix(gold).is_some_and(ends_a_word);
            if is_told && self.phrases.contains_key(&follows) {
                self.phrase_told.entry(follows).or_default().add(place);
                return;
            }
        }
    }
}

/// Whether the words before `answer is` make it a case, or somebody's claim: `if the answer is 4`.
fn is_supposed(before: &str) -> bool {
    const WORDS: [&str; 9] =
        ["if", "whether", "when", "that", "assume", "suppose", "says", "said", "thinks"];
    let last = before.rsplit(['.', '\n', '?']).next().unwrap_or(before);
    last.split_whitespace().rev().take(4).any(|word| WORDS.contains(&word))
}

/// Whether a number or a word ends where this text begins.
fn ends_a_word(after: &str) -> bool {
    let mut next = after.chars();
    match next.next() {
        Some('.' | ',' | '/' | '^') => !next.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => !c.is_alphanumeric() && !matches!(c, '+' | '-' | '*' | '_'),
        None => true,
    }
}

/// Whether a word, or a few, stand in a text.
fn holds(text: &str, gold: &str) -> bool {
    if gold.is_empty() {
        return false;
    }
    text.match_indices(gold).any(|(at, _)| {
        let begins = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        begins && ends_a_word(&text[at + gold.len()..])
    })
}

/// The way to the answer, where a row holds it: a column of its own, or the answer itself.
fn worked<'a>(row: &'a Cells, column: &str, answer: &'a str) -> Option<&'a str> {
    let apart = cell(row, "solution").filter(|_| column != "solution").and_then(Json::as_str);
    [apart, Some(answer)]
        .into_iter()
        .flatten()
        .find(|text| has_answer_mark(text) || text.trim().contains('\n') || text.contains(". "))
}

/// The end of a text.
fn tail(text: &str) -> &str {
    let start = text.char_indices().rev().nth(TAIL - 1);
    start.map_or(text, |(start, _)| &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_held_only_whole() {
        assert!(holds("so it is 4.", "4"));
        assert!(!holds("so it is 4.5", "4") && !holds("it is 14", "4") && !holds("it is 4x", "4"));
    }

    #[test]
    fn a_supposed_answer_is_none() {
        assert!(is_supposed("what follows if the "));
        assert!(!is_supposed("what is 2+2? the "));
    }
}
