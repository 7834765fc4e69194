//! Equal errors add up to what the aggregation says.
//!
//! ### Claim
//! With an error of 1 at every token the loss is the factor times the sum of the tokens' weights.
//!
//! ### Why it matters
//! It shows the denominator and nothing else: tokens, rows, rows with tokens, a constant, or the
//! width of the batch.
//!
//! ### Does not hold for
//! Batches without a token.
//!
//! ### Bugs it has caught
//! verl #2016: the ½ went in a refactoring of the aggregation. verl #3741: a denominator made of
//! the width of the batch.
//!
//! ### Example
//! ```diff
//! -    loss = factor * errors.sum() / mask.numel()
//! +    loss = factor * errors.sum() / count
//! ```

use super::mapped;
use crate::value_loss::{Options, ValueLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ValueLoss> = Rule::new(
    Pitfall::Aggregation,
    &[
        "half-factor-lost",
        "factor-applied-twice",
        "mean-over-padding",
        "sum-for-mean",
        "rows-without-tokens-counted",
        "rows-without-tokens-skipped",
        "normalised-by-the-width",
    ],
    check,
);

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    let Options { aggregate, empty_rows, norm_length, factor, .. } = *probe.options;
    let weights = aggregate.weights(&probe.case.mask, empty_rows, norm_length);
    let Some(weights) = weights else { return Err(Stop::Vacuous) };
    let constant = mapped(probe.case, |_, _, _| (1.0, 1.0, 0.0));
    let found = probe.call(&constant)?.loss[()];
    let expected = factor * weights.sum();
    let allowed = probe.bounds_in(&probe.expected_of(&constant), "loss")[[]];
    near("with values 1, old values 1 and returns 0 the loss", found, expected, allowed)
}
