//! Returns are linear in the rewards.
//!
//! ### Claim
//! Twice the rewards give twice the returns.
//!
//! ### Why it matters
//! A bias, a clamp or a normalisation hidden in the recursion shows here whatever its form.
//!
//! ### Does not hold for
//! Rewards that twice their size would take out of the generated range.
//!
//! ### Bugs it has caught
//! Returns divided by the length of their row still pass; a baseline or a clamp inside does not.
//!
//! ### Example
//! ```diff
//! -    rewards = rewards.masked_fill(~mask, 0).clamp(-10, 10)
//! +    rewards = rewards.masked_fill(~mask, 0)
//! ```

use crate::returns::Returns;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Returns> =
    Rule::new(Pitfall::AdvantageNormalisation, &["rewards-clipped"], check);

fn check(probe: &mut Probe<'_, Returns>) -> Outcome {
    let before = probe.output()?;
    let mut doubled = probe.case.clone();
    for (reward, kept) in doubled.rewards.iter_mut().zip(&probe.case.mask) {
        *reward *= if *kept { 2.0 } else { 1.0 };
    }
    let after = probe.call(&doubled)?;
    let expected = 2.0 * &before.output.returns;
    let allowed = only(4.0 * probe.related("returns"), |at: [usize; 2]| probe.case.mask[at]);
    close("with twice the rewards, returns", &after.returns, &expected, &allowed)
}
