//! The first groups that may stay do, up to the limit.
//!
//! ### Claim
//! As many groups stay as may, and each that does appears before any that the limit cuts off.
//!
//! ### Why it matters
//! The limit is the batch size in prompts. Batches that are larger do not fit, those that are
//! smaller waste a step; which prompts are cut off decides what is sampled again.
//!
//! ### Does not hold for
//! `limit: null`.
//!
//! ### Bugs it has caught
//! Limits that count rows; limits of 0 that are none; groups cut before they were filtered.
//!
//! ### Example
//! Under `limit=2`:
//! ```diff
//!              keep[rows] = 1
//! -        kept += 1
//! +            kept += 1
//! ```

use crate::group_filter::{GroupFilter, members, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::Configuration,
    &[
        "limit-ignored",
        "limit-counts-rows",
        "limit-before-the-filter",
        "limit-takes-the-last",
        "limit-by-the-number",
        "limit-of-none-is-no-limit",
        "limit-one-too-many",
    ],
    check,
)
.under(|options| options.limit.is_some());

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let limit = options.limit.map_or(usize::MAX, |limit| limit as usize);
    let returned = probe.output()?;
    let mut groups = members(case);
    groups.retain(|rows| oracle::stays(case, options, rows));
    for (place, rows) in groups.iter().enumerate() {
        let expected = f64::from(place < limit);
        if let Some(row) = rows.iter().find(|row| returned.output.keep[**row] != expected) {
            broken!(
                "keep[{row}] is {}, expected {}: its group is number {} of {} that may stay, and \
                 the limit is {limit}",
                number(returned.output.keep[*row]),
                number(expected),
                place + 1,
                groups.len()
            );
        }
    }
    Ok(())
}
