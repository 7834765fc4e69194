//! The gradient at a position sums to zero over the vocabulary.
//!
//! ### Claim
//! The gradient by the logits of a position sums to 0 over the vocabulary.
//!
//! ### Why it matters
//! Raising all logits of a position changes nothing, so no gradient may ask for it. One that does
//! has lost the normaliser: it pushes the sampled token up and never the others down, and the
//! logits drift without bound.
//!
//! ### Does not hold for
//! `gradient: false`, and components that give no gradients.
//!
//! ### Bugs it has caught
//! Normalisers computed without gradient, to save memory.
//!
//! ### Example
//! ```diff
//! -    log_probs = scaled - torch.logsumexp(scaled.detach(), dim=-1, keepdim=True)
//! +    log_probs = torch.log_softmax(scaled, dim=-1)
//! ```

use ndarray::Axis;

use crate::token_log_probs::TokenLogProbs;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::GradientFlow,
    &["gradient-detached-from-the-normaliser", "gradient-of-the-normaliser-only"],
    check,
)
.under(|options| options.gradient)
.needs_gradient();

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let returned = probe.gradient_output()?;
    let Some(gradient) = &returned.output.grad_logits else { return Err(Stop::Vacuous) };
    if gradient.dim() != probe.case.logits.dim() {
        // The law `gradient` says so.
        return Err(Stop::Vacuous);
    }
    let expected = TokenLogProbs::oracle_gradient(probe.case, probe.options, probe.place.dtype);
    let allowed = probe.bounds_in(&expected, "grad_logits").sum_axis(Axis(2));
    for ((row, column), sum) in gradient.sum_axis(Axis(2)).indexed_iter() {
        let allowed = allowed[[row, column]];
        if apart(*sum, 0.0, allowed) {
            broken!(
                "grad_logits[{row}, {column}] sums to {} over the vocabulary, expected 0 ± \
                 {allowed:.1e}",
                rounded(*sum),
            );
        }
    }
    Ok(())
}
