//! A gap of g in every token weighs as its level says.
//!
//! ### Claim
//! A gap of g in each of n tokens gives e^g, e^(n·g) and e^g for token, sequence and geometric.
//!
//! ### Why it matters
//! An engine in another precision is off by about the same in every token, so this is the mismatch
//! as it is. The three levels agree on single tokens, and rows of equal length hide a wrong mean.
//!
//! ### Does not hold for
//! Weights that are clamped or divided. Dropped tokens are left out.
//!
//! ### Bugs it has caught
//! unsloth-zoo #870: T instead of 1 at g = 0; trl #5814 asks whether a row's product is meant.
//!
//! ### Example
//! Under `level="geometric", clamp_high=None`:
//! ```diff
//!      if level == "geometric":
//! -        exponent = log_ratio.mean(1, keepdim=True)
//! +        exponent = row_mean(log_ratio, mask)
//! ```

use super::with_gaps;
use crate::importance_weights::oracle::Verdict;
use crate::importance_weights::{ImportanceWeights, Level, Normalize};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::ProbabilityRatio,
    &[
        "sampler-replaced",
        "sum-of-exponentials",
        "product-for-the-row-mean",
        "row-mean-for-the-product",
        "log-ratio-clamped-although-not-declared",
        "clamped-although-not-declared",
    ],
    check,
)
.under(|options| {
    options.clamp_low.is_none()
        && options.clamp_high.is_none()
        && options.log_ratio_clamp.is_none()
        && options.normalize == Normalize::None
});

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let gap = *probe.pick.one(&[0.5, -0.5, 0.25, -0.125, 2.5, 0.0, 6.0]);
    let constant = with_gaps(probe.case, |_| gap);
    let tokens = super::tokens(probe, &constant);
    let output = probe.call(&constant)?;
    let bounds = probe.bounds_in(&probe.expected_of(&constant), "weights");
    let mut checked = false;
    for token in tokens.iter().filter(|token| token.dropped == Verdict::No) {
        let (row, column) = token.at;
        let count = constant.mask.row(row).iter().filter(|kept| **kept).count();
        let exponent = match probe.options.level {
            Level::Token | Level::Geometric => gap,
            Level::Sequence => count as f64 * gap,
        };
        let what =
            format_args!("with a gap of {gap} in each of {count} tokens, weights[{row}, {column}]");
        near(what, output.weights[token.at], exponent.exp(), bounds[[row, column]])?;
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
