//! Masked tokens have no gradient.
//!
//! ### Claim
//! The gradient by the logits of a masked token is 0, whatever stands there.
//!
//! ### Why it matters
//! What is masked is not the policy's own: prompts, answers of tools, pads. A bonus there makes the
//! model undecided about what others say, and NaN there is NaN in every weight.
//!
//! ### Does not hold for
//! Batches without a masked token; components that give no gradients.
//!
//! ### Bugs it has caught
//! trl #5594: a product with the mask, whose backward is NaN times 0.
//!
//! ### Example
//! Under `masked_values="any"`:
//! ```diff
//! -    entropies = token_entropies(logits / temperature)
//! +    logits = logits.masked_fill(~mask.unsqueeze(-1), 0)  # NaN * 0 is NaN, in backward too
//! +    entropies = token_entropies(logits / temperature)
//! ```

use crate::entropy_bonus::EntropyBonus;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> = Rule::new(
    Pitfall::GradientFlow,
    &["masked-after-the-arithmetic", "gradient-at-masked-tokens", "mask-ignored"],
    check,
)
.needs_gradient();

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    let all = probe.case.mask.iter().all(|kept| *kept);
    if all || !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let returned = probe.gradient_output()?;
    let Some(gradient) = &returned.output.grad_logits else { return Err(Stop::Vacuous) };
    if gradient.dim() != probe.case.logits.dim() {
        // The law `gradient` says so.
        return Err(Stop::Vacuous);
    }
    for ((row, token, entry), slope) in gradient.indexed_iter() {
        if !probe.case.mask[[row, token]] && *slope != 0.0 {
            let found = rounded(*slope);
            broken!("grad_logits[{row}, {token}, {entry}] is {found}, expected 0: it is masked");
        }
    }
    Ok(())
}
