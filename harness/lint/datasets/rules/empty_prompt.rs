//! A prompt is blank.
//!
//! ### Fires when
//! A prompt, or a message of the user in it, has no character but white space, and no image,
//! sound or film.
//!
//! ### Not said
//! Why it is blank.
//!
//! ### Causes
//! - a column that was empty where the prompt was made
//! - a template whose place for the question was not filled
//!
//! ### Next
//! - remove the rows that are named or fill them, then shakedown check-data FILE
//!
//! ### Source
//! What is generated from nothing is scored against an answer to something.

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
    let seen = &data.seen.prompts;
    if seen.texts.count + seen.messages.count == 0 {
        return Err(insufficient("no prompts"));
    }
    if seen.blank.is_empty() {
        return Ok(vec![]);
    }
    let found =
        format!("the prompt of {} is blank, or a user's message in it", data.rows_of(&seen.blank));
    data.firing(Severity::Error, &seen.blank, data.prompt_column(), found).into()
}
