//! Clipping takes the gradient from the tokens it is for, and from no others.
//!
//! ### Claim
//! The gradient is 0 where the ratio is beyond the bound of its sign or dual clip, and only there.
//!
//! ### Why it matters
//! Clipping stops what went far enough in the right direction. What went wrong must keep its
//! gradient, or it is never repaired; what is clipped in value only is not stopped at all.
//!
//! ### Does not hold for
//! Other objectives than `ppo-clip`; `beta` > 0, where the reference pulls too; shared ratios.
//!
//! ### Bugs it has caught
//! trl #3145, #3175: fractions that counted the tokens which are not clipped, or either side
//! whatever the sign.
//!
//! ### Example
//! ```diff
//! -        losses = -advantages * clipped
//! +        losses = torch.max(-advantages * ratio, -advantages * clipped)
//! ```

use super::{gradient, weights};
use crate::policy_loss::{Advantages, Objective, PolicyLoss, Ratio};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::ProbabilityRatio,
    &[
        "minimum-for-maximum",
        "clipping-ignored",
        "maximum-left-out",
        "clipped-tokens-keep-their-gradient",
        "lower-bound-ignored",
        "upper-bound-ignored",
        "dual-clip-for-every-sign",
        "dual-clip-ignored",
        "ratio-detached",
        "old-log-probs-are-current",
    ],
    check,
)
.under(|options| {
    options.objective == Objective::PpoClip && options.ratio == Ratio::Token && options.beta == 0.0
})
.needs_gradient();

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let weights = weights(case, options)?;
    let returned = probe.gradient_output()?;
    let slopes = gradient(&returned.output, case)?;
    let expected = PolicyLoss::oracle_gradient(case, options, probe.place.dtype);
    let bounds = probe.bounds_in(&expected, "grad_log_probs");
    let advantages = Advantages::of(case);
    let ((lo, hi), dual) = (options.bounds(), options.dual().unwrap_or(f64::INFINITY));
    let limit = options.log_ratio_clamp.unwrap_or(f64::INFINITY);
    for (at, weight) in weights.indexed_iter().filter(|(_, weight)| **weight > 0.0) {
        let (x, a) = (case.log_probs[at] - case.old_log_probs[at], advantages.at(at.0, at.1));
        let (ratio, slope, bound) = (x.exp(), slopes[at], bounds[[at.0, at.1]]);
        let stopped = if a > 0.0 { ratio > hi } else { ratio < lo || ratio > dual };
        let small = slope.abs() <= bound;
        if bound.is_finite() && x.abs() <= limit && a != 0.0 {
            let kept = weight * a.abs() * ratio > 2.0 * bound;
            if (stopped && !small) || (!stopped && small && kept) {
                broken!(
                    "grad_log_probs[{}, {}] is {} at a ratio of {} and an advantage of {a}: the \
                     ratio is {}",
                    at.0,
                    at.1,
                    rounded(slope),
                    rounded(ratio),
                    if stopped { "clipped, expected 0" } else { "not clipped, expected one" }
                );
            }
        }
    }
    Ok(())
}
