//! One prompt has two answers.
//!
//! ### Fires when
//! A prompt stands in two rows with different answers. Answers are held against each other where
//! they are short: the last one of a worked solution, numbers by value, without white space,
//! dollar signs and the like. Lists and objects, which hold tests or several right answers, are
//! not.
//!
//! ### Not said
//! Which of them is right.
//!
//! ### Causes
//! - wrong labels in one of two data sets that were joined
//! - part of the question is in a column that is not in the prompt
//! - two ways to write one answer that are not recognised as such
//!
//! ### Next
//! - settle or remove the rows that are named, then shakedown check-data FILE
//!
//! ### Source
//! What is right for one row is wrong for the other: the gradients of the two cancel.

use crate::datasets::Dataset;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["prompt", "answer"],
    explains: &[],
    contracts: &[("reward-function", &["wrong-scores-less"])],
    catches: &[],
    check,
};

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen;
    if seen.answers.count == 0 || seen.identity.count < 2 {
        return Err(insufficient("fewer than two prompts with answers"));
    }
    let hits = &seen.identity.contradicting;
    if hits.is_empty() {
        return Ok(vec![]);
    }
    let rows = data.rows_of(hits);
    let found = format!("the prompt of {rows} stands in an earlier row with another answer");
    data.firing(Severity::Error, hits, data.answer_column(), found).into()
}
