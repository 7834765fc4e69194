//! The loss is linear in the size of the advantages.
//!
//! ### Claim
//! Twice the advantages give twice the loss.
//!
//! ### Why it matters
//! Advantages arrive normalised as was chosen. A loss that clips, centres or squares them again
//! changes the choice without a word.
//!
//! ### Does not hold for
//! `beta` > 0, where the loss has a part without advantages.
//!
//! ### Bugs it has caught
//! Advantages whitened a second time, or clipped by a default that was meant for rewards.
//!
//! ### Example
//! ```diff
//! -    advantages = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
//! +    advantages = advantages.masked_fill(~mask, 0)
//! ```

use super::loss_bound;
use crate::policy_loss::{PolicyLoss, PolicyLossCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["advantages-clipped", "advantages-normalised-again"],
    check,
)
.under(|options| options.beta == 0.0);

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let mut doubled = PolicyLossCase { ..probe.case.clone() };
    let by_token = doubled.advantages.ndim() > 1;
    for (at, advantage) in doubled.advantages.indexed_iter_mut() {
        let kept = !by_token || probe.case.mask[[at[0], at[1]]];
        *advantage *= if kept { 2.0 } else { 1.0 };
    }
    let after = probe.call(&doubled)?;
    let [expected, expected_after] = [probe.expected().to_vec(), probe.expected_of(&doubled)];
    let allowed = 2.0 * loss_bound(probe, &expected) + loss_bound(probe, &expected_after);
    let (found, expected) = (after.loss[()], 2.0 * before.output.loss[()]);
    near("with twice the advantages, loss", found, expected, allowed)
}
