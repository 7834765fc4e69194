//! A group that differs stays.
//!
//! ### Claim
//! A group in which one row differs stays, however small the difference.
//!
//! ### Why it matters
//! One right answer among eight is where a policy learns most. A test that looks at some of the
//! rows, or at differences of a certain size, throws these prompts away.
//!
//! ### Does not hold for
//! `criterion: range`; a `limit`, for which others may have come first; smaller differences than
//! are generated.
//!
//! ### Bugs it has caught
//! Thresholds made for scores of 0 and 1; the first two rows of a group in place of all.
//!
//! ### Example
//! ```diff
//! -            solved = own > 0.5
//! -            stays = 0 < solved.sum() < len(own)
//! +            stays = own.max() - own.min() > tolerance
//! ```

use super::several;
use crate::group_filter::{Criterion, GroupFilter, GroupFilterCase, spread};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "first-two-decide",
        "ends-decide",
        "flat-groups-kept",
        "small-spreads-dropped",
        "scores-read-as-flags",
        "last-group-left-out",
        "dropped-for-kept",
    ],
    check,
)
.under(|options| options.criterion == Criterion::Spread && options.limit.is_none());

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let groups = several(probe.case)?;
    let returned = probe.output()?;
    let varied = groups.iter().filter(|(_, rows)| spread(probe.case, rows) > 0.0);
    for (group, rows) in varied {
        if let Some(row) = rows.iter().find(|row| returned.output.keep[**row] != 1.0) {
            broken!(
                "the metric of group {group} differs by {}, but keep[{row}] is {}, expected 1",
                rounded(spread(probe.case, rows)),
                number(returned.output.keep[*row])
            );
        }
    }
    // One row of some group, moved by as little as may be.
    let (group, rows) = probe.pick.one(&groups);
    let step = (100.0 * probe.options.tolerance).max(1e-3);
    let dtype = probe.place.dtype;
    let odd_one = *probe.pick.one(rows);
    let base = dtype.round(probe.case.metric[rows[0]]);
    let moved = dtype.round(base + 1.01 * step);
    if moved == base {
        return Err(Stop::Vacuous); // The format does not hold so small a difference.
    }
    let mut changed: GroupFilterCase = probe.case.clone();
    rows.iter().for_each(|row| changed.metric[*row] = base);
    changed.metric[odd_one] = moved;
    let after = probe.call(&changed)?;
    if let Some(row) = rows.iter().find(|row| after.keep[**row] != 1.0) {
        broken!(
            "with {} for {} in row {odd_one} alone, keep[{row}] is {}, expected 1: group {group} \
             differs",
            number(moved),
            number(base),
            number(after.keep[*row])
        );
    }
    Ok(())
}
