//! Answers hold more than the answer.
//!
//! ### Fires when
//! The median row's answer is a number, and more than 5 % of the answers hold `####`, `\boxed{`
//! or an answer tag, or more than 200 characters.
//!
//! ### Not said
//! Anything about data sets all of whose answers are worked solutions: their reward functions
//! extract the last one.
//!
//! ### Causes
//! - the extraction of the answer failed for these rows and left the solution
//! - rows of two data sets, one of them with solutions
//!
//! ### Next
//! - extract the final answer of these rows, then shakedown check-data FILE
//! - shakedown check --only answer-extractor
//!
//! ### Source
//! A completion that says the number does not equal a text that says more.

use crate::datasets::Dataset;
use crate::datasets::data::percent;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["answer"],
    explains: &[],
    contracts: &[("answer-extractor", &["recovered"])],
    catches: &[],
    check,
};

/// Fewer than this share may be long by nature.
const LARGEST_SHARE: f64 = 0.05;

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen.answers;
    if seen.count == 0 {
        return Err(insufficient("no answers"));
    }
    let share = seen.unextracted.count as f64 / seen.count as f64;
    if 2 * seen.numbers <= seen.count || share <= LARGEST_SHARE {
        return Ok(vec![]);
    }
    let found = format!(
        "most answers are numbers, and those of {}, {}, hold a solution",
        data.rows_of(&seen.unextracted),
        percent(share),
    );
    let column = data.answer_column();
    let firing = data.firing(Severity::Warning, &seen.unextracted, column, found);
    firing.column(column, "share", share, Some(LARGEST_SHARE)).into()
}
