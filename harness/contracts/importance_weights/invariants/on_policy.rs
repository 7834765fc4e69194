//! Where policy and sampler agree, nothing is corrected.
//!
//! ### Claim
//! Where the sampler equals the policy, every token is kept with the weight 1.
//!
//! ### Why it matters
//! That is the case the weights leave alone. Any other weight here scales the learning rate, and
//! one that grows with the length of a row favours long completions.
//!
//! ### Does not hold for
//! Bounds that leave 1 out or are next to it, and a drift δ that is not above 0.
//!
//! ### Bugs it has caught
//! unsloth-zoo #870: Σ exp(d) for exp(Σ d), which is T.
//!
//! ### Example
//! Under `level="sequence"`:
//! ```diff
//!      if level == "sequence":
//! -        exponent = log_ratio.logsumexp(1, keepdim=True)
//! +        exponent = log_ratio.sum(1, keepdim=True)
//! ```

use super::clamp_holds_one;
use crate::importance_weights::oracle::Verdict;
use crate::importance_weights::{ImportanceWeights, ImportanceWeightsCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::ProbabilityRatio,
    &[
        "sum-of-exponentials",
        "row-weight-shared-out",
        "row-weight-on-the-last-token",
        "veto-of-the-log-ratio",
        "drift-within-the-limit",
        "bounds-of-the-log-ratio",
        "sum-to-one",
    ],
    check,
)
.under(clamp_holds_one);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let equal = ImportanceWeightsCase {
        sampler_log_probs: probe.case.log_probs.clone(),
        ..probe.case.clone()
    };
    let tokens = super::tokens(probe, &equal);
    if tokens.is_empty() || tokens.iter().any(|token| token.dropped != Verdict::No) {
        return Err(Stop::Vacuous);
    }
    let output = probe.call(&equal)?;
    let allowed = probe.bounds_in(&probe.expected_of(&equal), "weights");
    for token in tokens {
        let (row, column) = token.at;
        let what = format_args!("with the sampler equal to the policy, weights[{row}, {column}]");
        near(what, output.weights[token.at], 1.0, allowed[[row, column]])?;
        if output.keep.as_ref().is_some_and(|keep| keep[token.at] != 1.0) {
            broken!("with the sampler equal to the policy, keep[{row}, {column}] is false");
        }
    }
    Ok(())
}
