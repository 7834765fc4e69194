//! The level of both log-probabilities is nobody's business.
//!
//! ### Claim
//! Adding the same number to both log-probabilities of a token changes nothing.
//!
//! ### Why it matters
//! Rare tokens have large negative logarithms. A weight that depends on how rare a token is, and
//! not on the gap alone, is made of probabilities, or has lost its digits on the way.
//!
//! ### Does not hold for
//! Nothing: it holds under every option.
//!
//! ### Bugs it has caught
//! OpenRLHF #620: log-probabilities rounded before they are subtracted.
//!
//! ### Example
//! ```diff
//! -    log_ratio = log_probs.detach().bfloat16() - sampler_log_probs.bfloat16()
//! -    log_ratio = log_ratio.to(log_probs).masked_fill(~mask, 0)
//! +    log_ratio = (log_probs.detach() - sampler_log_probs).masked_fill(~mask, 0)
//! ```

use crate::importance_weights::ImportanceWeights;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "sampler-left-out",
        "policy-left-out",
        "gaps-added",
        "difference-of-probabilities",
        "gaps-in-half-precision",
    ],
    check,
);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let by = *probe.pick.one(&[-1.0, -2.0, -7.0, -0.5]);
    // Parts so large that the dtype holds the sums too.
    let parts = if matches!(probe.place.dtype, Dtype::F32 | Dtype::F64) { 1024.0 } else { 32.0 };
    let (mut before, mut after) = (probe.case.clone(), probe.case.clone());
    let mut changed = false;
    for (at, _) in probe.case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        for (before, after) in [
            (&mut before.log_probs[at], &mut after.log_probs[at]),
            (&mut before.sampler_log_probs[at], &mut after.sampler_log_probs[at]),
        ] {
            *before = (parts * before.clamp(-1.0, 1.0)).round() / parts;
            *after = *before + by;
            changed = true;
        }
    }
    if !changed {
        return Err(Stop::Vacuous);
    }
    let first = probe.call(&before)?;
    let second = probe.call(&after)?;
    let (of_first, of_second) = (probe.expected_of(&before), probe.expected_of(&after));
    let allowed = probe.bounds_in(&of_first, "weights") + probe.bounds_in(&of_second, "weights");
    let mut allowed = allowed;
    for (allowed, kept) in allowed.iter_mut().zip(&probe.case.mask) {
        *allowed = if *kept { *allowed } else { f64::INFINITY };
    }
    let what = format_args!("with {by} added to both log-probabilities, weights");
    unchanged(what, &second.weights, &first.weights, &allowed)
}
