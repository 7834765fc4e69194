//! The gradient by the logits of a prefix sums to 0.
//!
//! ### Claim
//! At each update the gradients by all logits behind a prefix add up to 0.
//!
//! ### Why it matters
//! A softmax does not change when all its logits move alike, so no loss of probabilities has a
//! gradient in that direction. One that has is not of the log-probabilities: a normaliser is
//! missing, or is detached.
//!
//! ### Does not hold for
//! Nothing that is trained on probabilities.
//!
//! ### Bugs it has caught
//! Planted: a normaliser without a gradient.
//!
//! ### Example
//! ```diff
//! -    log_probs = z - z.logsumexp(-1, keepdim=True).detach()
//! +    log_probs = z - z.logsumexp(-1, keepdim=True)
//! ```

use ndarray::Axis;

use crate::grpo_step::GrpoStep;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GrpoStep> =
    Rule::new(Pitfall::GradientFlow, &["gradient-detached-from-the-normaliser"], check);

fn check(probe: &mut Probe<'_, GrpoStep>) -> Outcome {
    let returned = probe.finite_output()?;
    let bounds = probe.bounds("gradient");
    let gradient = &returned.output.gradient;
    let vocabulary = Axis(gradient.ndim() - 1);
    let sums = gradient.sum_axis(vocabulary);
    let allowed = bounds.sum_axis(vocabulary);
    for ((at, sum), allowed) in sums.indexed_iter().zip(&allowed) {
        if apart(*sum, 0.0, *allowed) {
            broken!("gradient{} sum to {}, expected 0", index(&at), number(*sum));
        }
    }
    Ok(())
}
