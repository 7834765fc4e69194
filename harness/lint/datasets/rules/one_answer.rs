//! Most rows have one and the same answer.
//!
//! ### Fires when
//! Of 20 answers or more at least half are the same. Where there are two to ten different
//! answers, these are classes, of which one may be common: then nine in ten.
//!
//! ### Not said
//! That the answer is wrong.
//!
//! ### Causes
//! - a column that was filled with a default
//! - an extraction that gives the same text where it fails
//! - rows that were sorted or filtered by their answer
//!
//! ### Next
//! - look at the rows with the commonest answer, then shakedown check-data FILE
//!
//! ### Source
//! A policy that always says it gets that share of the reward, and learns no more.

use crate::datasets::Dataset;
use crate::datasets::data::percent;
use crate::rules::{Firing, Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["answer"],
    explains: &[],
    contracts: &[("reward-function", &["answers-repeated"])],
    catches: &[],
    check,
};

/// Fewer answers say little.
const ENOUGH: u64 = 20;

/// With no more different answers than these, they are classes.
const CLASSES: usize = 10;

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen.answers;
    if seen.count < ENOUGH {
        return Err(insufficient(format!("{} answers, {ENOUGH} are needed", seen.count)));
    }
    let most = seen.counts.values().copied().max().unwrap_or(0);
    let share = most as f64 / seen.count as f64;
    let limit = if (2..=CLASSES).contains(&seen.counts.len()) { 0.9 } else { 0.5 };
    if share < limit {
        return Ok(vec![]);
    }
    let found = format!(
        "{most} of {} answers, {}, are one; {} are different",
        seen.count,
        percent(share),
        seen.counts.len(),
    );
    Firing::error(found).column(data.answer_column(), "share", share, Some(limit)).into()
}
