//! What is remembered of preference pairs.

use serde_json::Value as Json;

use super::columns::{Cells, cell};
use super::hits::{Hits, Place};
use super::prompt::Prompt;
use super::text::Hash;

/// What is remembered of preference pairs.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) count: u64,
    pub(super) equal: Hits,
    /// Rows without prompt whose sides begin differently.
    pub(super) without_prompt: Hits,
    pub(super) not_the_assistant: Hits,
    /// Pairs whose chosen, and whose rejected side is longer.
    pub(super) longer: [u64; 2],
    /// How many characters the sides have together.
    pub(super) characters: [u64; 2],
}

impl Pairs {
    pub(super) fn take(&mut self, row: &Cells, has_prompt: bool, place: Place, shows_text: bool) {
        let (Some(chosen), Some(rejected)) = (cell(row, "chosen"), cell(row, "rejected")) else {
            return;
        };
        self.count += 1;
        if exact(chosen) == exact(rejected) {
            let shown = chosen.as_str().filter(|_| shows_text);
            self.equal.add_text(place, shown);
        }
        let lengths = lengths(chosen, rejected);
        self.longer[0] += u64::from(lengths[0] > lengths[1]);
        self.longer[1] += u64::from(lengths[1] > lengths[0]);
        self.characters[0] += lengths[0];
        self.characters[1] += lengths[1];
        self.without_prompt.add_if(!has_prompt && !begin_alike(chosen, rejected), place);
        let is_ended = [chosen, rejected].into_iter().all(ends_with_the_assistant);
        self.not_the_assistant.add_if(!is_ended, place);
    }
}

/// What a side says. Case counts here: a pair may be about nothing else.
fn exact(side: &Json) -> Hash {
    match side {
        Json::String(text) => Hash::EMPTY.bytes(text.trim().as_bytes()),
        other => Hash::EMPTY.bytes(other.to_string().as_bytes()),
    }
}

/// How many characters each side has behind what both begin with.
fn lengths(chosen: &Json, rejected: &Json) -> [u64; 2] {
    let length = |texts: &[Json]| {
        let messages = Json::from(texts.to_vec());
        let side = Prompt::new(&messages);
        let texts = side.messages.iter().flat_map(|message| &message.texts);
        texts.map(|text| text.chars().count() as u64).sum()
    };
    match (chosen, rejected) {
        (Json::Array(one), Json::Array(other)) => {
            let shared = one.iter().zip(other).take_while(|(a, b)| a == b).count();
            [length(&one[shared..]), length(&other[shared..])]
        }
        (Json::String(one), Json::String(other)) => {
            let shared = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
            [one, other].map(|text| (text.chars().count() - shared) as u64)
        }
        _ => [0, 0],
    }
}

/// Whether two sides share a beginning, from which the prompt can be taken.
fn begin_alike(chosen: &Json, rejected: &Json) -> bool {
    match (chosen, rejected) {
        (Json::Array(one), Json::Array(other)) => {
            one.first().is_some_and(|first| Some(first) == other.first())
        }
        (Json::String(one), Json::String(other)) => {
            let shared = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
            shared.filter(|(c, _)| !c.is_whitespace()).count() > 0
        }
        _ => false,
    }
}

fn ends_with_the_assistant(side: &Json) -> bool {
    match side {
        Json::Array(messages) => {
            let role = messages.last().and_then(|last| last.get("role")).and_then(Json::as_str);
            matches!(role, Some("assistant"))
        }
        _ => true,
    }
}
