//! Divided weights have the mean that they were divided for.
//!
//! ### Claim
//! With `normalize` the mean of the weights is 1, or they are all 0.
//!
//! ### Why it matters
//! Weights below 1 on average are a smaller learning rate that nobody set. Divided before the clamp
//! or by another mean, they drift with the mismatch, the padding and the lengths of the rows.
//!
//! ### Does not hold for
//! `normalize: none`; batches without a token; a token of which rounding decides.
//!
//! ### Bugs it has caught
//! Weights divided first and clamped then.
//!
//! ### Example
//! Under `normalize="tokens"`:
//! ```diff
//! -    weights = normalized(ratio, mask, normalize)
//! -    weights = weights.clamp(clamp_low or 0, clamp_high)
//! -    weights = weights.masked_fill(~keep, 0)
//! +    weights = ratio.clamp(clamp_low or 0, clamp_high)
//! +    weights = weights.masked_fill(~keep, 0)
//! +    weights = normalized(weights, mask, normalize)
//! ```

use super::tokens;
use crate::importance_weights::{ImportanceWeights, Normalize};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::Aggregation,
    &[
        "normalised-before-the-clamp",
        "normalize-ignored",
        "token-mean-for-row-means",
        "row-means-for-the-token-mean",
        "mean-over-padding",
        "mean-of-the-unclamped",
        "mean-of-the-kept",
        "mean-of-what-would-be-kept",
        "pads-weigh-one-in-the-mean",
        "empty-rows-in-the-mean",
        "sum-to-one",
        "divided-by-the-largest",
        "root-of-the-mean-square",
    ],
    check,
)
.under(|options| options.normalize != Normalize::None);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let tokens = tokens(probe, probe.case);
    let returned = probe.output()?;
    let bounds = probe.bounds("weights");
    let count = |row: usize| tokens.iter().filter(|token| token.at.0 == row).count() as f64;
    let rows = super::filled_rows(&probe.case.mask).len() as f64;
    let (mut mean, mut allowed, mut nothing) = (0.0, 0.0, true);
    for token in &tokens {
        let share = match probe.options.normalize {
            Normalize::None => return Err(Stop::Vacuous),
            Normalize::Tokens => 1.0 / tokens.len() as f64,
            Normalize::Sequences => 1.0 / (rows * count(token.at.0)),
        };
        let (row, column) = token.at;
        mean += share * returned.output.weights[token.at];
        allowed += share * bounds[[row, column]];
        nothing &= returned.output.weights[token.at] == 0.0;
    }
    if nothing || !f64::is_finite(allowed) || !mean.is_finite() {
        return Err(Stop::Vacuous);
    }
    near("the mean weight", mean, 1.0, allowed)
}
