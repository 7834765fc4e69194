//! Prompts are repeated.
//!
//! ### Fires when
//! At least 1 % of the rows have a prompt that an earlier row had, with the same images, contexts
//! and tools. Of pairs and completions the whole row counts: one prompt may have several. Not
//! where all rows have one prompt, as those of environments have.
//!
//! ### Not said
//! That training on a prompt twice is wrong: an epoch does so.
//!
//! ### Causes
//! - the data set was written several times over
//! - data sets that share their sources were joined
//!
//! ### Next
//! - remove the repeated rows, then shakedown check-data FILE
//!
//! ### Source
//! DAPO-Math-17k is distributed with each of its prompts about a hundred times; an epoch is then
//! a hundred.

use crate::datasets::Dataset;
use crate::datasets::data::percent;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient, not_applicable};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Advantage,
    needs: &["prompt"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

/// So many may be by accident.
const LARGEST_SHARE: f64 = 0.01;

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen.identity;
    match (seen.count, seen.distinct()) {
        (0 | 1, _) => return Err(insufficient("fewer than two prompts")),
        (3.., 1) if data.seen.answers.count == 0 && data.seen.pairs.count == 0 => {
            return Err(not_applicable("all rows have one prompt: those of an environment"));
        }
        _ => {}
    }
    let share = seen.repeated.count as f64 / seen.count as f64;
    if share < LARGEST_SHARE {
        return Ok(vec![]);
    }
    let found = format!(
        "the prompt of {}, {}, stands in an earlier row; {} are different",
        data.rows_of(&seen.repeated),
        percent(share),
        seen.distinct(),
    );
    let column = data.prompt_column();
    let firing = data.firing(Severity::Warning, &seen.repeated, column, found);
    firing.column(column, "share", share, Some(LARGEST_SHARE)).into()
}
