//! The rows of a group share one fate.
//!
//! ### Claim
//! Either all rows of a group stay, or none does.
//!
//! ### Why it matters
//! The baseline of a group is made of all its rows. What is left of a group that was torn has
//! another mean and another deviation, and one row alone has no advantage at all.
//!
//! ### Does not hold for
//! Groups of one row.
//!
//! ### Bugs it has caught
//! NeMo-RL #2176: the key of a group held its later turns, so that it became several.
//!
//! ### Example
//! ```diff
//! -            keep[rows] = (own > own.mean()).float()
//! +            keep[rows] = 1
//! ```

use super::several;
use crate::group_filter::GroupFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "group-falls-apart",
        "best-row-alone",
        "equal-rows-left-out",
        "last-row-left-out",
        "groups-assumed-contiguous",
        "groups-strided",
        "neighbours-are-a-group",
        "keep-in-the-order-of-groups",
    ],
    check,
);

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let groups = several(probe.case)?;
    let returned = probe.finite_output()?;
    let keep = &returned.output.keep;
    for (group, rows) in groups {
        if let Some(other) = rows.iter().find(|row| keep[**row] != keep[rows[0]]) {
            let [first, found] = [keep[rows[0]], keep[*other]].map(number);
            broken!(
                "keep[{}] is {first} and keep[{other}] is {found}, but both are of group {group}",
                rows[0]
            );
        }
    }
    Ok(())
}
