//! A row without a token has a share in nothing.
//!
//! ### Claim
//! Without its rows that have no token, a batch gives the same weights and metrics.
//!
//! ### Why it matters
//! A prompt that was too long, a sample that failed: such rows fill up a batch. If they count in a
//! mean, the weights of all others depend on how many there are.
//!
//! ### Does not hold for
//! Batches in which every row is without a token, or none.
//!
//! ### Bugs it has caught
//! Means over N where some rows are empty; compare verl's and trl's losses of empty rows.
//!
//! ### Example
//! Under `normalize="sequences"`:
//! ```diff
//! -        mean = row_mean(weights, mask).mean()
//! +        mean = row_mean(weights, mask)[mask.any(1)].mean()
//! ```

use super::filled_rows;
use crate::importance_weights::ImportanceWeights;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::Aggregation,
    &["empty-rows-in-the-mean", "mismatch-over-padding", "clip-fraction-over-padding"],
    check,
);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let filled = filled_rows(&probe.case.mask);
    if filled.is_empty() || filled.len() == probe.case.mask.nrows() {
        return Err(Stop::Vacuous);
    }
    let fewer = ImportanceWeights::take(probe.case, &filled);
    let before = probe.finite_output()?;
    let after = probe.call(&fewer)?;
    let of_fewer = probe.expected_of(&fewer);
    let bounds = probe.related("weights");
    for (row, own) in filled.iter().enumerate() {
        for column in (0..fewer.mask.ncols()).filter(|column| fewer.mask[[row, *column]]) {
            let (found, expected) =
                (after.weights[[row, column]], before.output.weights[[*own, column]]);
            let what = format_args!("without empty rows, weights[{own}, {column}]");
            near(what, found, expected, 2.0 * bounds[[*own, column]])?;
        }
    }
    for (name, after, before) in [
        ("clip_fraction", &after.clip_fraction, &before.output.clip_fraction),
        ("mismatch_kl", &after.mismatch_kl, &before.output.mismatch_kl),
    ] {
        let (Some(after), Some(before)) = (after, before) else { continue };
        let allowed = probe.related(name)[[]] + probe.bounds_in(&of_fewer, name)[[]];
        near(format_args!("without empty rows, {name}"), after[()], before[()], allowed)?;
    }
    Ok(())
}
