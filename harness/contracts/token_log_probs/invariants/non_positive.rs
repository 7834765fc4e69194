//! No log-probability is positive.
//!
//! ### Claim
//! A log-probability is at most 0.
//!
//! ### Why it matters
//! A probability above 1 is none. Positive numbers here are losses (the sign of a cross-entropy),
//! probabilities, or logits that were never normalised, and each of them trains in the wrong
//! direction or at the wrong scale.
//!
//! ### Does not hold for
//! A residue of rounding above 0.
//!
//! ### Bugs it has caught
//! Cross-entropy (the negative log-probability, as PyTorch gives it) taken for its negative.
//!
//! ### Example
//! ```diff
//! -    return torch.nn.functional.cross_entropy(scaled.mT, tokens, reduction="none")
//! +    return log_probs.gather(-1, tokens[..., None]).squeeze(-1)
//! ```

use crate::token_log_probs::TokenLogProbs;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::LogSpaceSign,
    &["sign-flipped", "probability-for-log-probability", "logit-not-normalised"],
    check,
);

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("log_probs");
    for (((row, column), found), allowed) in returned.output.log_probs.indexed_iter().zip(&bounds) {
        if *found > *allowed {
            broken!(
                "log_probs[{row}, {column}] is {}, expected at most 0 + {allowed:.1e}",
                rounded(*found)
            );
        }
    }
    Ok(())
}
