//! No gradient gets through the weights.
//!
//! ### Claim
//! The gradient of the summed weights by log_probs is 0.
//!
//! ### Why it matters
//! A weight multiplies the loss of its token. If the graph goes through it, the policy lowers the
//! loss by lowering the weights of tokens with a positive loss, whatever their
//! reward.
//!
//! ### Does not hold for
//! Components that cannot give gradients.
//!
//! ### Bugs it has caught
//! A `detach` that was left out where the weights are made in the training step itself.
//!
//! ### Example
//! ```diff
//! -    log_ratio = (log_probs - sampler_log_probs).masked_fill(~mask, 0)
//! +    log_ratio = (log_probs.detach() - sampler_log_probs).masked_fill(~mask, 0)
//! ```

use crate::importance_weights::ImportanceWeights;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> =
    Rule::new(Pitfall::GradientFlow, &["weights-with-a-gradient", "gradient-of-the-row"], check)
        .needs_gradient();

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let returned = probe.gradient_output()?;
    let Some(gradient) = &returned.output.grad_log_probs else { return Err(Stop::Vacuous) };
    if let Some((at, found)) = gradient.indexed_iter().find(|(_, x)| **x != 0.0) {
        let (row, column) = at;
        broken!(
            "grad_log_probs[{row}, {column}] is {}, expected 0: the weights are not detached",
            number(*found)
        );
    }
    Ok(())
}
