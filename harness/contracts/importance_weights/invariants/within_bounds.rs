//! The weights are within their clamp.
//!
//! ### Claim
//! What is kept weighs from `clamp_low` to `clamp_high`.
//!
//! ### Why it matters
//! The bound keeps one token that the sampler hardly liked from being the whole gradient of a
//! batch. Without the lower one, rows that the policy has left are not trained at all.
//!
//! ### Does not hold for
//! Weights that are divided by their mean after the clamp.
//!
//! ### Bugs it has caught
//! Bounds of the log-ratio where those of the ratio were meant; one bound of two.
//!
//! ### Example
//! Under `clamp_low=0.5`:
//! ```diff
//! -    weights = ratio.clamp(max=clamp_high)
//! +    weights = ratio.clamp(clamp_low or 0, clamp_high)
//! ```

use super::tokens;
use crate::importance_weights::oracle::Verdict;
use crate::importance_weights::{ImportanceWeights, Normalize, Rejected};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::ProbabilityRatio,
    &["lower-clamp-missing", "upper-clamp-missing", "clamp-around-one", "bounds-of-the-exponent"],
    check,
)
.under(|options| {
    options.normalize == Normalize::None
        && (options.clamp_low.is_some() || options.clamp_high.is_some())
});

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let tokens = tokens(probe, probe.case);
    let returned = probe.output()?;
    let unchanged = probe.options.rejected == Rejected::Unchanged;
    let low = probe.options.clamp_low.unwrap_or(0.0);
    let high = probe.options.clamp_high.unwrap_or(f64::INFINITY);
    let mut checked = false;
    for token in tokens.iter().filter(|token| unchanged || token.dropped == Verdict::No) {
        let (row, column) = token.at;
        let found = returned.output.weights[token.at];
        let rounding = |bound| probe.tolerance.bound(Number::new(bound, bound), 1);
        let is_below = found < low - rounding(low);
        let is_above = high.is_finite() && found > high + rounding(high);
        if is_below || is_above {
            let found = rounded(found);
            broken!("weights[{row}, {column}] is {found}, expected from {low} to {high}");
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
