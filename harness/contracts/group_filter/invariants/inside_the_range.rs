//! A group stays where its mean lies inside, and not on the edge.
//!
//! ### Claim
//! A constant group stays if its metric lies strictly inside the range, and else goes.
//!
//! ### Why it matters
//! The range stands for prompts that are neither too easy nor too hard. With its edges inside, all
//! of them that nobody solves or everybody solves come back.
//!
//! ### Does not hold for
//! `criterion: spread`; a `limit`, for which others may have come first.
//!
//! ### Bugs it has caught
//! `lo <= mean <= hi`; one end of the range that is never read; sums for means.
//!
//! ### Example
//! Under `criterion="range"`:
//! ```diff
//! -            stays = low <= own.mean() <= high
//! +            stays = low < own.mean() < high
//! ```

use super::several;
use crate::group_filter::{Criterion, GroupFilter, spread};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::Configuration,
    &["edges-are-inside", "one-end-of-the-range", "sum-for-the-mean", "spread-for-the-range"],
    check,
)
.under(|options| options.criterion == Criterion::Range && options.limit.is_none());

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let mut groups = several(probe.case)?;
    groups.retain(|(_, rows)| spread(probe.case, rows) == 0.0);
    if groups.is_empty() {
        return Err(Stop::Vacuous);
    }
    let returned = probe.output()?;
    let [lo, hi] = probe.options.range;
    for (group, rows) in groups {
        let mean = probe.case.metric[rows[0]];
        let expected = f64::from(lo < mean && mean < hi);
        let found = returned.output.keep[rows[0]];
        if found != expected {
            broken!(
                "all of group {group} is {}, the range [{}, {}], and keep[{}] is {}, expected {}",
                number(mean),
                number(lo),
                number(hi),
                rows[0],
                number(found),
                number(expected)
            );
        }
    }
    Ok(())
}
