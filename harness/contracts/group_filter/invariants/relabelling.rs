//! The numbers of the groups are only names.
//!
//! ### Claim
//! Giving the groups other numbers changes nothing.
//!
//! ### Why it matters
//! Group numbers are prompt ids, hashes, uuids cast to integers. Code that uses them as indices, or
//! expects them to ascend, works until the data loader is shuffled.
//!
//! ### Does not hold for
//! `layout: contiguous`, where a component may never read `groups`.
//!
//! ### Bugs it has caught
//! Dictionaries sorted by their keys: other groups are cut off by the limit, and rows come back in
//! another order.
//!
//! ### Example
//! Under `limit=1`:
//! ```diff
//! -    for group in groups.unique():
//! +    for group in dict.fromkeys(groups.tolist()):  # in order of appearance
//!          rows = groups == group
//! ```

use crate::group_filter::{GroupFilter, GroupFilterCase, Layout, members};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["limit-by-the-number", "keep-in-the-order-of-groups"],
    check,
)
.under(|options| options.layout == Layout::Any);

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let before = probe.finite_output()?;
    let groups = members(probe.case);
    let order = probe.pick.shuffled(groups.len());
    let first = *probe.pick.one(&[0, 5, -2, 1 << 33]);
    let mut relabelled: GroupFilterCase = probe.case.clone();
    for (number, rows) in groups.iter().enumerate() {
        rows.iter().for_each(|row| relabelled.groups[*row] = first + 3 * order[number] as i64);
    }
    let after = probe.call(&relabelled)?;
    for (row, (after, before)) in after.keep.iter().zip(&before.output.keep).enumerate() {
        if after != before {
            let [after, before] = [after, before].map(|flag| number(*flag));
            broken!(
                "with groups numbered {}, keep[{row}] is {after}, before it was {before}",
                relabelled.groups
            );
        }
    }
    Ok(())
}
