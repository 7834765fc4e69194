//! The gradient at a token is finite and sums to zero over the vocabulary.
//!
//! ### Claim
//! The gradient by the logits of a token is finite, and sums to 0 over the vocabulary.
//!
//! ### Why it matters
//! Raising all logits of a token changes nothing, so no gradient may ask for it. One that does has
//! lost the normaliser, and the logits drift without bound.
//!
//! ### Does not hold for
//! Components that give no gradients.
//!
//! ### Bugs it has caught
//! Normalisers computed without gradient, to save memory.
//!
//! ### Example
//! ```diff
//! -    log_probs = logits - logits.detach().logsumexp(dim=-1, keepdim=True)
//! +    log_probs = logits.log_softmax(dim=-1)
//! ```

use super::super::oracle;
use super::given;
use crate::entropy_bonus::EntropyBonus;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> =
    Rule::new(Pitfall::GradientFlow, &["normaliser-detached", "maximum-not-subtracted"], check)
        .needs_gradient();

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    let returned = probe.gradient_output()?;
    let Some(gradient) = &returned.output.grad_logits else { return Err(Stop::Vacuous) };
    let first = given(&returned.output, probe.options).next();
    let Some((.., times)) = first.filter(|_| gradient.dim() == probe.case.logits.dim()) else {
        // The law `gradient` says so.
        return Err(Stop::Vacuous);
    };
    let expected = oracle::gradient(probe.case, probe.options, probe.place.dtype, times);
    let bounds = probe.bounds_in(&expected, "grad_logits");
    for ((row, token), kept) in probe.case.mask.indexed_iter() {
        if !kept {
            continue;
        }
        let entries = || 0..gradient.dim().2;
        let allowed: f64 = entries().map(|entry| bounds[[row, token, entry]]).sum();
        let sum: f64 = entries().map(|entry| gradient[[row, token, entry]]).sum();
        if apart(sum, 0.0, allowed) {
            broken!(
                "grad_logits[{row}, {token}] sums to {} over the vocabulary, expected 0 ± \
                 {allowed:.1e}",
                rounded(sum),
            );
        }
    }
    Ok(())
}
