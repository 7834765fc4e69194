//! The numbers of the groups are only names.
//!
//! ### Claim
//! Giving the groups other numbers changes nothing.
//!
//! ### Why it matters
//! Group numbers are prompt ids, hashes, uuids cast to integers. Code that uses them as indices,
//! or expects them to ascend, works until the data loader is shuffled.
//!
//! ### Does not hold for
//! `layout: contiguous`, where a component may never read `groups`.
//!
//! ### Bugs it has caught
//! Rows returned in the order of their group numbers.
//!
//! ### Example
//! Under `normalise="group"`:
//! ```diff
//! -    for group in range(len(groups.unique())):
//! +    for group in groups.unique():
//! ```

use super::same;
use crate::reward_combination::{Layout, RewardCombination, members};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> =
    Rule::new(Pitfall::AdvantageNormalisation, &["rows-in-group-order"], check)
        .under(|options| options.layout == Layout::Any);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let before = probe.finite_output()?;
    let groups = members(probe.case);
    let order = probe.pick.shuffled(groups.len());
    let first = *probe.pick.one(&[0, 5, -2, 1 << 33]);
    let mut relabelled = probe.case.clone();
    for (number, rows) in groups.iter().enumerate() {
        rows.iter().for_each(|row| relabelled.groups[*row] = first + 3 * order[number] as i64);
    }
    let after = probe.call(&relabelled)?;
    let allowed = 2.0 * probe.related("combined");
    let what = format!("with groups numbered {}", relabelled.groups);
    same(&what, &after.combined, &before.output.combined, &allowed)
}
