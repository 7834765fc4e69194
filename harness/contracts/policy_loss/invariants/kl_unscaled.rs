//! The reported divergence is the one in the loss, without its coefficient.
//!
//! ### Claim
//! The loss has beta times `kl` more than where the reference is the policy itself.
//!
//! ### Why it matters
//! `kl` is what people watch and what controllers of beta act on. Scaled, or averaged in another
//! way than the loss, it cannot be compared between runs.
//!
//! ### Does not hold for
//! `beta` = 0, and components that give no `kl`.
//!
//! ### Bugs it has caught
//! Divergences logged after they were multiplied by beta.
//!
//! ### Example
//! Under `beta=0.1`:
//! ```diff
//! -        kl = beta * (delta.exp() - 1 - delta)
//! -        losses = losses + kl
//! +        kl = delta.exp() - 1 - delta
//! +        losses = losses + beta * kl
//! ```

use super::{at_the_reference, loss_bound};
use crate::policy_loss::PolicyLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::Configuration,
    &["kl-reported-scaled", "kl-coefficient-forced-to-zero", "beta-applied-twice"],
    check,
)
.under(|options| {
    options.beta > 0.0 && options.kl_clamp.is_none_or(|[lo, hi]| lo <= 0.0 && hi >= 0.0)
});

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let away = probe.finite_output()?;
    let Some(kl) = &away.output.kl else { return Err(Stop::Vacuous) };
    let near = at_the_reference(probe.case);
    let at_home = probe.call(&near)?;
    let [expected, expected_near] = [probe.expected().to_vec(), probe.expected_of(&near)];
    let beta = probe.options.beta;
    let allowed = loss_bound(probe, &expected)
        + loss_bound(probe, &expected_near)
        + beta * probe.bounds_in(&expected, "kl")[[]];
    let (found, expected) = (away.output.loss[()] - at_home.loss[()], beta * kl[()]);
    if apart(found, expected, allowed) {
        let [found, expected] = pair(found, expected);
        broken!(
            "the reference adds {found} to loss, but beta times kl is {expected}; allowed \
             difference {allowed:.1e}"
        );
    }
    Ok(())
}
