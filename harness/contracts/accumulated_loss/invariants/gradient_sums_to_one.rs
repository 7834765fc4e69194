//! The gradient of a mean sums to 1.
//!
//! ### Claim
//! The gradient by the token losses sums to 1 over all micro-batches.
//!
//! ### Why it matters
//! Raising every token's loss by 1 raises their mean by 1, so the derivatives add up to 1. Where a
//! micro-batch's gradients are lost, or were taken before the division, the reported value says
//! nothing of it.
//!
//! ### Does not hold for
//! Sums; rows without a token where they are counted; components that give no gradients.
//!
//! ### Bugs it has caught
//! open-instruct #1498: K - 1 gradients discarded. verl #3332: scaled after the backward pass.
//!
//! ### Example
//! ```diff
//! -        loss = loss.detach() + losses.sum() / tokens
//! +        loss = loss + losses.sum() / tokens
//! ```

use super::constant_loss::is_mean;
use super::with_tokens;
use crate::accumulated_loss::{AccumulatedLoss, gradient_field};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AccumulatedLoss> = Rule::new(
    Pitfall::GradientFlow,
    &[
        "only-the-last-micro-batch",
        "gradient-zeroed-each-micro-batch",
        "divided-after-backward",
        "divided-again-by-micro-batches",
    ],
    check,
)
.under(is_mean)
.needs_gradient();

fn check(probe: &mut Probe<'_, AccumulatedLoss>) -> Outcome {
    with_tokens(probe)?;
    let returned = probe.gradient_output()?;
    let gradients = &returned.output.grad_micro_batches;
    if gradients.len() != probe.case.micro_batches.len() {
        return Err(Stop::Vacuous);
    }
    let expected = AccumulatedLoss::oracle_gradient(probe.case, probe.options, probe.place.dtype);
    let bounds = (0..gradients.len()).map(|k| probe.bounds_in(&expected, gradient_field(k)).sum());
    let allowed: f64 = bounds.sum();
    let sum: f64 = gradients.iter().map(|gradient| gradient.token_losses.sum()).sum();
    if apart(sum, 1.0, allowed) {
        let [found, expected] = pair(sum, 1.0);
        broken!("the gradients sum to {found}, expected {expected} ± {allowed:.1e}");
    }
    Ok(())
}
