//! Rows have no answer.
//!
//! ### Fires when
//! The answer of a row is null, empty, or missing while others have one. Rows that are scored by
//! tests, rubrics or constraints of their own have none, nor do the parts of a data set (by
//! `data_source`, `task` or the like) in which no row has one while others do.
//!
//! ### Not said
//! That such a row is scored wrongly: a reward function may leave it out.
//!
//! ### Causes
//! - an answer that could not be extracted
//! - rows that are scored in another way
//! - a join that found no partner
//!
//! ### Next
//! - remove the rows that are named, then shakedown check-data FILE
//! - shakedown check --only reward-function/blank-gold
//!
//! ### Source
//! Many reward functions find an empty answer in every completion, and pay for it.

use crate::datasets::Dataset;
use crate::datasets::hits::Hits;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["answer"],
    explains: &[],
    contracts: &[("reward-function", &["blank-gold", "empty-answer"])],
    catches: &[],
    check,
};

/// A part of this many rows without any answer is scored in another way, if other parts have them.
const SMALLEST_PART: u64 = 10;

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen.answers;
    if data.seen.columns.answer.is_none() {
        return Err(insufficient("no column of answers"));
    }
    let has_answers = seen.count > 0;
    let is_apart = |(present, missing): &(u64, Hits)| {
        has_answers && *present == 0 && missing.count >= SMALLEST_PART
    };
    let parts = seen.by_source.values().filter(|part| !is_apart(part));
    let rows = Hits::all(parts.map(|(_, missing)| missing));
    if rows.is_empty() {
        return Ok(vec![]);
    }
    let column = data.answer_column();
    let found = format!("no `{column}` in {}", data.rows_of(&rows));
    data.firing(Severity::Error, &rows, column, found).into()
}
