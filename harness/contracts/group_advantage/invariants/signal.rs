//! Rewards that differ give advantages.
//!
//! ### Claim
//! The advantages of a group are not all zero when its rewards differ.
//!
//! ### Why it matters
//! Advantages of zero are the most common reason for a run without improvement: the loss is flat,
//! the gradient is zero, and nothing complains.
//!
//! ### Does not hold for
//! Rewards that differ by no more than a few roundings, and advantages too small for the dtype.
//!
//! ### Bugs it has caught
//! Rewards truncated to integers; ROLL 9c6ce5c0 (scores replaced by zeros).
//!
//! ### Example
//! ```diff
//! -        own = rewards[rows].trunc()
//! +        own = rewards[rows]
//! ```

use super::several;
use crate::group_advantage::GroupAdvantage;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> =
    Rule::new(Pitfall::AdvantageNormalisation, &["rewards-truncated-to-integers"], check);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let returned = probe.finite_output()?;
    let noise = 64.0 * probe.place.dtype.arithmetic().unit_roundoff();
    let smallest = probe.place.dtype.min_positive();
    let expected = probe.expected()[0].numbers.clone();
    let mut checked = false;
    for (number, rows) in several(probe.case)? {
        let rewards = || rows.iter().map(|row| probe.case.rewards[*row]);
        let (least, most) =
            (rewards().fold(f64::INFINITY, f64::min), rewards().fold(f64::NEG_INFINITY, f64::max));
        let underflows = rows.iter().all(|row| expected[*row].value.abs() < smallest);
        if underflows || most - least <= noise * most.abs().max(least.abs()) {
            continue;
        }
        checked = true;
        if rows.iter().all(|row| returned.output.advantages[*row] == 0.0) {
            broken!(
                "the rewards of group {number} differ (from {} to {}), but its advantages are \
                 all 0",
                rounded(least),
                rounded(most),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
