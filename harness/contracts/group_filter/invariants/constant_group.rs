//! A group that does not differ goes.
//!
//! ### Claim
//! A group of two or more rows of one metric goes, whatever the metric.
//!
//! ### Why it matters
//! Its advantages are 0, so it takes the place of a prompt that has something to say. The rounded
//! mean of equal numbers is not always that number: a deviation about it that is compared with 0
//! keeps such groups in one precision and drops them in another.
//!
//! ### Does not hold for
//! `criterion: range`, which keeps them where their mean lies inside.
//!
//! ### Bugs it has caught
//! OpenRLHF #1270 and #1272: four rewards of 0.5 have a mean between 0 and 1, and stay. Deviations
//! compared with 0.
//!
//! ### Example
//! ```diff
//! -            stays = 0 < own.mean() < 1
//! +            stays = own.max() - own.min() > tolerance
//! ```

use super::several;
use crate::group_filter::{Criterion, GroupFilter, spread};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::StabilityConstant,
    &[
        "mean-inside-is-no-spread",
        "flat-groups-kept",
        "deviation-compared-with-zero",
        "variance-of-squares",
        "only-all-wrong-dropped",
        "only-all-right-dropped",
        "nothing-left-keeps-everything",
        "dropped-for-kept",
        "first-group-decides",
    ],
    check,
)
.under(|options| options.criterion == Criterion::Spread);

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let mut groups = several(probe.case)?;
    groups.retain(|(_, rows)| spread(probe.case, rows) == 0.0);
    if groups.is_empty() {
        return Err(Stop::Vacuous);
    }
    let returned = probe.output()?;
    for (group, rows) in groups {
        if let Some(row) = rows.iter().find(|row| returned.output.keep[**row] != 0.0) {
            broken!(
                "the metric of group {group} is {} in all of its {} rows, but keep[{row}] is {}, \
                 expected 0",
                number(probe.case.metric[*row]),
                rows.len(),
                number(returned.output.keep[*row])
            );
        }
    }
    Ok(())
}
