//! A ratio is within what its exponent is clamped to.
//!
//! ### Claim
//! What is kept weighs from e^-c to e^c, or what its own clamp makes of them.
//!
//! ### Why it matters
//! The clamp is there so that exp stays finite. If it stands behind exp, or at each token of a sum,
//! the ratio of a long row is what it would be without.
//!
//! ### Does not hold for
//! `log_ratio_clamp: null`; weights that are divided by their mean.
//!
//! ### Bugs it has caught
//! Log-ratios clamped before they are added up to the exponent of a row.
//!
//! ### Example
//! Under `level="sequence", clamp_high=None, log_ratio_clamp=5.0`:
//! ```diff
//! -        exponent = log_ratio.clamp(-limit, limit).sum(1, keepdim=True)
//! +        exponent = log_ratio.sum(1, keepdim=True)
//! +    exponent = exponent.clamp(-limit, limit)
//! ```

use super::tokens;
use crate::importance_weights::oracle::Verdict;
use crate::importance_weights::{ImportanceWeights, Normalize, Rejected};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::ProbabilityRatio,
    &[
        "log-ratio-clamp-ignored",
        "log-ratio-clamped-on-one-side",
        "log-ratio-clamped-token-by-token",
        "ratio-clamped-at-c",
        "beyond-the-clamp-dropped",
    ],
    check,
)
.under(|options| options.log_ratio_clamp.is_some() && options.normalize == Normalize::None);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let Some(c) = probe.options.log_ratio_clamp else { return Err(Stop::Vacuous) };
    let tokens = tokens(probe, probe.case);
    let returned = probe.output()?;
    let unchanged = probe.options.rejected == Rejected::Unchanged;
    let low = probe.options.clamp_low.unwrap_or(0.0);
    let high = probe.options.clamp_high.unwrap_or(f64::INFINITY);
    let [least, most] = [-c, c].map(|x| x.exp().max(low).min(high));
    let mut checked = false;
    for token in tokens.iter().filter(|token| unchanged || token.dropped == Verdict::No) {
        let (row, column) = token.at;
        let found = returned.output.weights[token.at];
        let rounding = |bound: f64| probe.tolerance.bound(Number::new(bound, bound * (2.0 + c)), 1);
        let is_below = found < least - rounding(least);
        let is_above = most.is_finite() && found > most + rounding(most);
        if is_below || is_above {
            broken!(
                "weights[{row}, {column}] is {}, expected from {} to {}",
                rounded(found),
                rounded(least),
                rounded(most)
            );
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
