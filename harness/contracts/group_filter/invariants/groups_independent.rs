//! Other groups have no influence.
//!
//! ### Claim
//! Another metric of one group changes no flag of another.
//!
//! ### Why it matters
//! Groups are prompts. Whether one of them has something to say does not depend on which others
//! were sampled beside it.
//!
//! ### Does not hold for
//! A `limit`, for which a group may have to make room for another.
//!
//! ### Bugs it has caught
//! Spreads of the whole batch; fallbacks that keep everything where nothing would stay.
//!
//! ### Example
//! ```diff
//! -            stays = metric.max() - metric.min() > tolerance
//! +            stays = own.max() - own.min() > tolerance
//! ```

use crate::group_filter::{GroupFilter, GroupFilterCase, members};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "spread-of-the-batch",
        "groups-run-together",
        "first-group-decides",
        "nothing-left-keeps-everything",
        "groups-assumed-contiguous",
    ],
    check,
)
.under(|options| options.limit.is_none());

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let groups = members(probe.case);
    if groups.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let rows = probe.pick.one(&groups);
    let [lo, hi] = probe.options.range;
    // Constant inside the range, constant beyond it, or of both.
    let (first, others) = *probe.pick.one(&[(0.5, 0.5), (8.0, 8.0), (0.0, 2.0)]);
    let dtype = probe.place.dtype;
    let mut changed: GroupFilterCase = probe.case.clone();
    for (place, row) in rows.iter().enumerate() {
        let share = if place == 0 { first } else { others };
        changed.metric[*row] = dtype.round(lo + share * (hi - lo));
    }
    let after = probe.call(&changed)?;
    for (row, (after, before)) in after.keep.iter().zip(&before.output.keep).enumerate() {
        if !rows.contains(&row) && after != before {
            let [after, before] = [after, before].map(|flag| number(*flag));
            broken!(
                "with another metric in rows {rows:?}, keep[{row}] is {after}, before it was \
                 {before}"
            );
        }
    }
    Ok(())
}
