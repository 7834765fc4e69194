//! The weight of a row is that of each of its tokens.
//!
//! ### Claim
//! Where a weight is that of a row, all of its tokens have the same.
//!
//! ### Why it matters
//! The row as a whole was sampled by another policy. Weights that differ inside of it weigh parts
//! of a completion against each other, by where they stand.
//!
//! ### Does not hold for
//! `level: token`, and tokens that are dropped by their own ratio.
//!
//! ### Bugs it has caught
//! A row's ratio that was built up token by token, as a cumulative sum.
//!
//! ### Example
//! Under `level="sequence"`:
//! ```diff
//!      if level == "sequence":
//! -        exponent = log_ratio.cumsum(1)
//! +        exponent = log_ratio.sum(1, keepdim=True)
//! ```

use super::tokens;
use crate::importance_weights::{ImportanceWeights, Level, Select};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::ProbabilityRatio,
    &["ratio-of-the-prefix", "token-ratios-for-a-row", "row-weight-on-the-last-token"],
    check,
)
.under(|options| options.level != Level::Token && options.select != Select::Token);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let tokens = tokens(probe, probe.case);
    let returned = probe.output()?;
    let weights = &returned.output.weights;
    let bounds = probe.bounds("weights");
    let mut checked = false;
    for both in tokens.windows(2).filter(|both| both[0].at.0 == both[1].at.0) {
        let [first, second] = [both[0].at, both[1].at];
        let (row, column) = second;
        let allowed = bounds[[first.0, first.1]] + bounds[[row, column]];
        if !weights[first].is_finite() {
            continue; // the business of the law `finite`
        }
        let what = format_args!(
            "next to weights[{row}, {}] in its row, weights[{row}, {column}]",
            first.1
        );
        near(what, weights[second], weights[first], allowed)?;
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
