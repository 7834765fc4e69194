//! What is remembered of preference pairs.

use serde_json::Value as Json;

use super::columns::{Cells, cell};
use super::hits::{Hits, Place};
use super::text::Hash;

/// What is remembered of preference pairs.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) count: u64,
    pub(super) equal: Hits,
    /// Rows without prompt whose sides begin differently.
    pub(super) without_prompt: Hits,
    pub(super) not_the_assistant: Hits,
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
