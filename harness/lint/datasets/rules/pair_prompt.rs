//! A pair has no prompt, or does not end with the assistant.
//!
//! ### Fires when
//! A pair has no prompt, and its sides do not begin alike, so that none can be taken from them;
//! or the last message of a side is not the assistant's.
//!
//! ### Not said
//! That the shared beginning is the prompt, and no more.
//!
//! ### Causes
//! - the column of the prompt was left out
//! - conversations that were cut behind the user's message
//!
//! ### Next
//! - add the prompt to these rows, or remove them, then shakedown check-data FILE
//!
//! ### Source
//! TRL takes the prompt from the shared beginning of both sides; what is behind it is scored as
//! the assistant's.

use crate::datasets::Dataset;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Loss,
    needs: &["chosen", "rejected"],
    explains: &[],
    contracts: &[("preference-loss", &["falls-with-the-margin"])],
    catches: &[],
    check,
};

fn check(data: &Dataset) -> Judgement {
    let pairs = &data.seen.pairs;
    if pairs.count == 0 {
        return Err(insufficient("no pairs"));
    }
    let what = [
        (&pairs.without_prompt, "no prompt, and sides that begin differently"),
        (&pairs.not_the_assistant, "a side that does not end with a message of the assistant"),
    ];
    let fired = what.into_iter().filter(|(hits, _)| !hits.is_empty()).map(|(hits, what)| {
        let found = format!("{}: {what}", data.rows_of(hits));
        data.firing(Severity::Error, hits, "chosen", found)
    });
    Ok(fired.collect())
}
