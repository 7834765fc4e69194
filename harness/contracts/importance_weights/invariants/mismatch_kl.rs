//! The mismatch is that of the log-probabilities as they came.
//!
//! ### Claim
//! With policy and sampler exchanged, mismatch_kl changes its sign and nothing else.
//!
//! ### Why it matters
//! It is the number that shows that an engine and a trainer have come apart. Taken of clamped
//! weights, or of what is kept, it is small just when it should not be.
//!
//! ### Does not hold for
//! Components that do not return it; batches without a token.
//!
//! ### Bugs it has caught
//! slime #1174, NeMo-RL #3900: measured after the clamp that removes it.
//!
//! ### Example
//! ```diff
//! -    mismatch_kl = -weights[mask].log().sum() / tokens
//! +    mismatch_kl = -log_ratio[mask].sum() / tokens
//! ```

use crate::importance_weights::{ImportanceWeights, ImportanceWeightsCase, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "statistics-after-the-clamp",
        "mismatch-is-absolute",
        "mismatch-is-k3",
        "mismatch-of-the-kept",
        "mismatch-of-the-mean-ratio",
    ],
    check,
);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let exchanged = ImportanceWeightsCase {
        log_probs: probe.case.sampler_log_probs.clone(),
        sampler_log_probs: probe.case.log_probs.clone(),
        ..probe.case.clone()
    };
    let before = probe.output()?;
    let after = probe.call(&exchanged)?;
    let (Some(before), Some(after)) = (&before.output.mismatch_kl, &after.mismatch_kl) else {
        return Err(Stop::Vacuous);
    };
    if !before[()].is_finite() {
        return Err(Stop::Vacuous); // the business of the law `finite`
    }
    let of_exchanged = probe.expected_of(&exchanged);
    let allowed =
        probe.related("mismatch_kl")[[]] + probe.bounds_in(&of_exchanged, "mismatch_kl")[[]];
    near("with policy and sampler exchanged, mismatch_kl", after[()], -before[()], allowed)
}
