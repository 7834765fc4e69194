//! The gradient at a position is finite and sums to zero over the vocabulary.
//!
//! ### Claim
//! The gradient by the logits of a position is finite, and sums to 0 over the vocabulary.
//!
//! ### Why it matters
//! Raising all logits of a position changes nothing, so no gradient may ask for it. One that does
//! has lost the normaliser, and the logits drift without bound.
//!
//! ### Does not hold for
//! `gradient: false`, components that give no gradients, and positions of which NaN is promised.
//!
//! ### Bugs it has caught
//! Normalisers computed without gradient, to save memory.
//!
//! ### Example
//! ```diff
//! -    log_probs = logits - logits.detach().logsumexp(dim=-1, keepdim=True)
//! +    log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)
//! ```

use crate::token_entropy::{TokenEntropy, positions};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenEntropy> =
    Rule::new(Pitfall::GradientFlow, &["normaliser-detached", "maximum-not-subtracted"], check)
        .under(|options| options.gradient)
        .needs_gradient();

fn check(probe: &mut Probe<'_, TokenEntropy>) -> Outcome {
    let returned = probe.gradient_output()?;
    let Some(gradient) = &returned.output.grad_logits else { return Err(Stop::Vacuous) };
    if gradient.dim() != probe.case.logits.dim() {
        // The law `gradient` says so.
        return Err(Stop::Vacuous);
    }
    let expected = TokenEntropy::oracle_gradient(probe.case, probe.options, probe.place.dtype);
    let bounds = probe.bounds_in(&expected, "grad_logits");
    for ((row, column), logits) in positions(probe.case) {
        let entries = || 0..logits.len();
        let allowed: f64 = entries().map(|entry| bounds[[row, column, entry]]).sum();
        let sum: f64 = entries().map(|entry| gradient[[row, column, entry]]).sum();
        if apart(sum, 0.0, allowed) {
            broken!(
                "grad_logits[{row}, {column}] sums to {} over the vocabulary, expected 0 ± \
                 {allowed:.1e}",
                rounded(sum),
            );
        }
    }
    Ok(())
}
