//! Prompts are not all texts, or not all messages.
//!
//! ### Fires when
//! Some prompts are texts and some are lists of messages, a prompt is neither, or a message has
//! no role or no content. A message that calls a tool needs no content.
//!
//! ### Not said
//! That the chat template accepts the messages.
//!
//! ### Causes
//! - two data sets in one file
//! - ShareGPT's `from` and `value` where `role` and `content` are expected
//! - messages written as a text
//!
//! ### Next
//! - write every prompt as a text, or every prompt as messages of `role` and `content`, then
//!   shakedown check-data FILE
//!
//! ### Source
//! Chat templates of transformers read `role` and `content`; TRL decides from the first row
//! whether a data set is conversational.

use crate::datasets::Dataset;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Decoding,
    needs: &["prompt"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

fn check(data: &Dataset) -> Judgement {
    let (seen, column) = (&data.seen.prompts, data.prompt_column());
    if seen.texts.count + seen.messages.count + seen.others.count == 0 {
        return Err(insufficient("no prompts"));
    }
    let mut fired = Vec::new();
    if !seen.others.is_empty() {
        let rows = data.rows_of(&seen.others);
        let found = format!("the prompt of {rows} is no text and no list of messages");
        fired.push(data.firing(Severity::Error, &seen.others, column, found));
    }
    if !seen.texts.is_empty() && !seen.messages.is_empty() {
        let (rarer, other) = match seen.texts.count < seen.messages.count {
            true => ((&seen.texts, "a text"), "messages"),
            false => ((&seen.messages, "messages"), "texts"),
        };
        let rows = data.rows_of(rarer.0);
        let found = format!("the prompt of {rows} is {}, all others are {other}", rarer.1);
        fired.push(data.firing(Severity::Error, rarer.0, column, found));
    }
    if !seen.incomplete.is_empty() {
        let rows = data.rows_of(&seen.incomplete);
        let written = match seen.has_from_and_value {
            true => "; they have `from` and `value`",
            false => "",
        };
        let found = format!("messages without role or content in {rows}{written}");
        fired.push(data.firing(Severity::Error, &seen.incomplete, column, found));
    }
    Ok(fired)
}
