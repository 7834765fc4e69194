//! Weighted, the sampler's tokens are as likely as the policy's.
//!
//! ### Claim
//! Over an enumerated vocabulary the expected weight under the sampler is 1.
//!
//! ### Why it matters
//! That is what the weights are for: an average over the sampler's tokens becomes one over the
//! policy's. Whatever else is 1 where both agree, and has the right sign, fails here.
//!
//! ### Does not hold for
//! Ratios of rows, and everything that bounds, drops or divides: it trades this for less variance.
//!
//! ### Bugs it has caught
//! Caps that nobody declared: a default of 2 stayed where the option said null.
//!
//! ### Example
//! Under `clamp_high=None`:
//! ```diff
//! -    weights = ratio.clamp(clamp_low or 0, clamp_high or 2)
//! +    weights = ratio.clamp(clamp_low or 0, clamp_high)
//! ```

use super::is_plain;
use crate::importance_weights::{ImportanceWeights, Level};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::ProbabilityRatio,
    &["log-ratio-clamped-although-not-declared", "clamped-although-not-declared"],
    check,
)
.under(|options| {
    options.level == Level::Token
        && is_plain(options)
        && options.clamp_low.is_none()
        && options.clamp_high.is_none()
        && options.log_ratio_clamp.is_none()
});

/// The largest vocabulary that is enumerated.
const VOCABULARY: usize = 8;

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let row = probe.pick.below(probe.case.mask.nrows());
    let mut vocabulary = ImportanceWeights::take(probe.case, &[row]);
    let full = vocabulary.mask.iter().all(|kept| *kept);
    if !full || !(2..=VOCABULARY).contains(&vocabulary.mask.ncols()) {
        return Err(Stop::Vacuous);
    }
    let dtype = probe.place.dtype;
    for log_probs in [&mut vocabulary.log_probs, &mut vocabulary.sampler_log_probs] {
        let largest = log_probs.fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let sum: f64 = log_probs.iter().map(|x| (x - largest).exp()).sum();
        log_probs.mapv_inplace(|x| dtype.round(x - largest - sum.ln()));
    }
    let output = probe.call(&vocabulary)?;
    let bounds = probe.bounds_in(&probe.expected_of(&vocabulary), "weights");
    let (mut found, mut exact, mut allowed) = (0.0, 0.0, 0.0);
    for (at, sampler) in vocabulary.sampler_log_probs.indexed_iter() {
        let probability = sampler.exp();
        found += probability * output.weights[at];
        // 1 but for the rounding of the inputs.
        exact += vocabulary.log_probs[at].exp();
        allowed += probability * bounds[[at.0, at.1]] + f64::EPSILON * 16.0;
    }
    near("the expected weight over a vocabulary", found, exact, allowed)
}
