//! Only differences count.
//!
//! ### Claim
//! Adding a constant to values, old values and returns changes nothing.
//!
//! ### Why it matters
//! A clip range is a distance around the old value. One that is a share of it, as for a ratio,
//! vanishes where the old value is 0.
//!
//! ### Does not hold for
//! Constants that rounding would change.
//!
//! ### Bugs it has caught
//! Clip bounds carried over from the policy loss.
//!
//! ### Example
//! Under `clip=0.2`:
//! ```diff
//! -        low, high = old_values * (1 - clip), old_values * (1 + clip)
//! +        low, high = old_values - clip, old_values + clip
//! ```

use super::mapped;
use crate::value_loss::{ValueLoss, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ValueLoss> = Rule::new(
    Pitfall::ProbabilityRatio,
    &["clip-relative-to-the-old-value", "sign-of-the-return-flipped"],
    check,
);

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let amount = *probe.pick.one(&[1.0, -1.0, 2.0, -4.0, 0.5]);
    let shifted =
        mapped(probe.case, |value, old, target| (value + amount, old + amount, target + amount));
    let back =
        mapped(&shifted, |value, old, target| (value - amount, old - amount, target - amount));
    let kept = |(at, kept): ((usize, usize), &bool)| {
        let [now, then] = [&back, probe.case]
            .map(|case| [case.values[at], case.old_values[at], case.returns[at]]);
        !kept || now == then
    };
    if !probe.case.mask.indexed_iter().all(kept) {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&shifted)?;
    let allowed = probe.related("loss") + probe.bounds_in(&probe.expected_of(&shifted), "loss");
    let what = format_args!("with {amount} added to values, old values and returns, the loss");
    unchanged(what, &after.loss, &before.output.loss, &allowed)
}
