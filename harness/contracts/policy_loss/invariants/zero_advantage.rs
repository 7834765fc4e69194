//! Without advantages there is no loss of the policy.
//!
//! ### Claim
//! Where every advantage is 0 and the policy is at the reference, loss and gradient are 0.
//!
//! ### Why it matters
//! A group whose rewards are all equal has advantages of 0 and must move nothing. What moves then
//! is a bias that is there at every step.
//!
//! ### Does not hold for
//! The gradient with `kl_estimator: k1`, which has a slope everywhere.
//!
//! ### Bugs it has caught
//! 0 · inf: a gradient of NaN at a ratio that overflows, whatever the advantage.
//!
//! ### Example
//! Under `extreme_ratios="finite"`:
//! ```diff
//! -    ratio = log_ratio.exp()
//! +    ratio = log_ratio.clamp(max=88).exp()  # e^89 is infinite in float32
//! ```

use super::{at_the_reference, loss_bound};
use crate::policy_loss::{KlEstimator, PolicyLoss, PolicyLossCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> =
    Rule::new(Pitfall::ProbabilityRatio, &["exponential-overflows"], check).under(|options| {
        options.beta == 0.0 || options.kl_clamp.is_none_or(|[lo, hi]| lo <= 0.0 && hi >= 0.0)
    });

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let still = at_the_reference(probe.case);
    let still = PolicyLossCase { advantages: still.advantages.mapv(|_| 0.0), ..still };
    let gradients = matches!(probe.gradients(), Gradients::Returned | Gradients::Optional);
    let returned = probe.call_with(&still, gradients)?;
    let allowed = loss_bound(probe, &probe.expected_of(&still));
    near("with advantages of 0, loss", returned.output.loss[()], 0.0, allowed)?;
    let sloped = probe.options.beta > 0.0 && probe.options.kl_estimator == KlEstimator::K1;
    let (Some(slopes), false) = (&returned.output.grad_log_probs, sloped) else { return Ok(()) };
    let expected = PolicyLoss::oracle_gradient(&still, probe.options, probe.place.dtype);
    let bounds = probe.bounds_in(&expected, "grad_log_probs");
    for ((row, token), slope) in slopes.indexed_iter() {
        let what = format_args!("with advantages of 0, grad_log_probs[{row}, {token}]");
        near(what, *slope, 0.0, bounds[[row, token]])?;
    }
    Ok(())
}
