//! The chosen side is the rejected one.
//!
//! ### Fires when
//! Both sides of a pair are the same, but for white space at their ends: an error from 1 % of the
//! pairs on, else a warning.
//!
//! ### Not said
//! That sides which differ a little are told apart well.
//!
//! ### Causes
//! - one answer was generated twice, and the two were ranked
//! - the columns were filled from one source
//!
//! ### Next
//! - remove the rows that are named, then shakedown check-data FILE
//!
//! ### Source
//! The gradients of the two sides cancel, and an accuracy of one half is counted.

use crate::datasets::Dataset;
use crate::datasets::data::percent;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Loss,
    needs: &["chosen", "rejected"],
    explains: &[],
    contracts: &[("preference-loss", &["opposite-pairs"])],
    catches: &[],
    check,
};

/// Fewer pairs than this share do no more than waste their steps.
const ERROR_SHARE: f64 = 0.01;

fn check(data: &Dataset) -> Judgement {
    let pairs = &data.seen.pairs;
    if pairs.count == 0 {
        return Err(insufficient("no pairs"));
    }
    if pairs.equal.is_empty() {
        return Ok(vec![]);
    }
    let share = pairs.equal.count as f64 / pairs.count as f64;
    let severity = if share >= ERROR_SHARE { Severity::Error } else { Severity::Warning };
    let rows = data.rows_of(&pairs.equal);
    let found = format!("the sides of {rows}, {}, are the same", percent(share));
    let firing = data.firing(severity, &pairs.equal, "chosen", found);
    firing.column("chosen", "share", share, Some(ERROR_SHARE)).into()
}
