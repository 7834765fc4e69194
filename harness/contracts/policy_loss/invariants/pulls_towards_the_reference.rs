//! The KL term pulls the policy towards the reference.
//!
//! ### Claim
//! Without advantages the gradient at a token has the sign of log_probs - ref_log_probs.
//!
//! ### Why it matters
//! A divergence that is only logged, computed without gradients, or whose coefficient is lost has
//! the right value in every chart and holds nothing.
//!
//! ### Does not hold for
//! `beta` = 0; `k1`, whose slope is the same everywhere; clamped tokens.
//!
//! ### Bugs it has caught
//! unsloth #3604: one loss type sets the coefficient to 0. verl #179: pushed away.
//!
//! ### Example
//! Under `beta=0.1`:
//! ```diff
//! -        delta = ref_log_probs - old_log_probs
//! +        delta = ref_log_probs - log_probs
//! ```

use super::{gradient, weights};
use crate::policy_loss::{PolicyLoss, PolicyLossCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::ReferenceDrift,
    &["kl-term-subtracted", "kl-coefficient-forced-to-zero", "kl-detached", "kl-of-the-old-policy"],
    check,
)
.under(|options| options.beta > 0.0 && options.kl_has_a_minimum())
.needs_gradient();

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    weights(probe.case, probe.options)?;
    let advantages = probe.case.advantages.mapv(|_| 0.0);
    let still = PolicyLossCase { advantages, ..probe.case.clone() };
    let returned = probe.call_with(&still, true)?;
    let slopes = gradient(&returned.output, &still)?;
    let oracle = PolicyLoss::oracle_gradient(&still, probe.options, probe.place.dtype);
    let bounds = probe.bounds_in(&oracle, "grad_log_probs");
    let Some(reference) = &still.ref_log_probs else { return Ok(()) };
    for (at, kept) in still.mask.indexed_iter() {
        let place = [at.0, at.1];
        let (expected, allowed) = (oracle[0].numbers[&place[..]].value, bounds[place]);
        // Only where the pull is more than rounding.
        if *kept && expected.abs() > 2.0 * allowed {
            let d = still.log_probs[at] - reference[at];
            let slope = slopes[at];
            if slope * d.signum() <= 0.0 || slope.is_nan() {
                broken!(
                    "without advantages, grad_log_probs[{}, {}] is {}, where log_probs - \
                     ref_log_probs is {}: expected the same sign",
                    at.0,
                    at.1,
                    rounded(slope),
                    rounded(d)
                );
            }
        }
    }
    Ok(())
}
