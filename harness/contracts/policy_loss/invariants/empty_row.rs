//! A row without a token counts as declared.
//!
//! ### Claim
//! One more row without a token changes nothing but, if declared, the number of rows.
//!
//! ### Why it matters
//! Filters mask whole completions. A row that divides by its count of 0 takes the whole batch with
//! it, and one that counts unasked scales the step by how many were filtered.
//!
//! ### Does not hold for
//! Batches without any token.
//!
//! ### Bugs it has caught
//! open-instruct #1685, trl #6320: one empty row made the batch NaN. trl #6439: lengths taken
//! before rows were dropped.
//!
//! ### Example
//! Under `aggregate="seq-mean-token-mean"`:
//! ```diff
//! -        per_row = per_row / lengths
//! +        per_row = per_row / lengths.clamp(min=1)
//! ```

use super::loss_bound;
use crate::policy_loss::{Options, PolicyLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::Aggregation,
    &[
        "empty-row-divides-by-zero",
        "empty-rows-counted",
        "empty-rows-skipped",
        "denominator-counts-dropped-tokens",
    ],
    check,
);

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let rows = PolicyLoss::rows(probe.case);
    let mut order: Vec<usize> = (0..rows).collect();
    order.push(0);
    let mut more = PolicyLoss::take(probe.case, &order);
    more.mask.row_mut(rows).fill(false);
    let by_token = more.advantages.ndim() > 1;
    // A masked number has a bound of its own, that those that count do not have.
    let others = [&mut more.log_probs, &mut more.old_log_probs];
    for array in others.into_iter().chain(more.ref_log_probs.as_mut()) {
        array.row_mut(rows).fill(-1.0);
    }
    more.advantages.index_axis_mut(ndarray::Axis(0), rows).fill(if by_token { 0.0 } else { 1.0 });
    let before = probe.output()?;
    let after = probe.call(&more)?;
    let Options { aggregate, empty_rows, .. } = *probe.options;
    let counted = match (aggregate, empty_rows) {
        (Aggregate::TokenMean | Aggregate::TokenSum, _) | (_, EmptyRows::Skip) => 1.0,
        (_, EmptyRows::Count) => rows as f64 / (rows + 1) as f64,
    };
    let [expected, expected_after] = [probe.expected().to_vec(), probe.expected_of(&more)];
    let allowed = loss_bound(probe, &expected) + loss_bound(probe, &expected_after);
    let (found, expected) = (after.loss[()], counted * before.output.loss[()]);
    near("with one more row, without a token, loss", found, expected, allowed)
}
