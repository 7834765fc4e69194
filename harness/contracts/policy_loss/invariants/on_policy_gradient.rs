//! On the policy the gradient is the advantage over the denominator.
//!
//! ### Claim
//! Where all policies are one, the gradient at a token is -A times the token's weight in the sum.
//!
//! ### Why it matters
//! Every objective agrees there: it is the policy gradient itself. What differs from it trains
//! something else from the first step on, whatever the loss says.
//!
//! ### Does not hold for
//! `cispo` with an upper bound below 1, which weights every token by less than 1.
//!
//! ### Bugs it has caught
//! unsloth #5230: right loss, gradient exactly 0. verl #3332: loss divided after the gradient was
//! taken.
//!
//! ### Example
//! ```diff
//! -    ratio = log_ratio.detach().clamp(max=88).exp()
//! +    ratio = log_ratio.clamp(max=88).exp()  # e^89 is infinite in float32
//! ```

use super::{gradient, on_policy, weights};
use crate::policy_loss::{Advantages, KlEstimator, Objective, PolicyLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::GradientFlow,
    &[
        "ratio-detached",
        "fused-path-zero-gradient",
        "gradient-of-the-sum",
        "gradient-doubled",
        "weight-keeps-its-gradient",
        "reinforce-with-the-probability",
    ],
    check,
)
.under(|options| {
    let (_, hi) = options.bounds();
    let clamped = options.kl_clamp.is_some() && options.beta > 0.0;
    (options.objective != Objective::Cispo || hi >= 1.0) && !clamped
})
.needs_gradient();

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    let weights = weights(probe.case, probe.options)?;
    let case = on_policy(probe.case);
    let returned = probe.call_with(&case, true)?;
    let slopes = gradient(&returned.output, &case)?;
    let (dtype, options) = (probe.place.dtype, probe.options);
    let bounds =
        probe.bounds_in(&PolicyLoss::oracle_gradient(&case, options, dtype), "grad_log_probs");
    // k1 alone has a slope where both policies agree.
    let kl = if options.kl_estimator == KlEstimator::K1 { options.beta } else { 0.0 };
    let advantages = Advantages::of(&case);
    for (at, weight) in weights.indexed_iter() {
        let advantage = if *weight > 0.0 { advantages.at(at.0, at.1) } else { 0.0 };
        let (found, expected) = (slopes[at], weight * (kl - advantage));
        let allowed = bounds[[at.0, at.1]];
        if apart(found, expected, allowed) {
            let [found, expected] = pair(found, expected);
            broken!(
                "where all policies are one, grad_log_probs[{}, {}] is {found}, expected \
                 {expected} ± {allowed:.1e}: the advantage is {advantage}, the token's weight \
                 {weight:.3e}",
                at.0,
                at.1
            );
        }
    }
    Ok(())
}
