//! A row without a token counts as declared.
//!
//! ### Claim
//! One more row without a token changes nothing but, if declared, the number of rows.
//!
//! ### Why it matters
//! Filters mask whole completions. A row that divides by its count of 0 takes the whole batch with
//! it, and one that counts unasked makes the bonus small where much was filtered.
//!
//! ### Does not hold for
//! Batches without any token.
//!
//! ### Bugs it has caught
//! open-instruct #1685, trl #6320: one empty row made the batch NaN.
//!
//! ### Example
//! Under `aggregate="seq-mean-token-mean"`:
//! ```diff
//! -        means = entropies.sum(dim=1) / lengths
//! +        means = entropies.sum(dim=1) / lengths.clamp(min=1)
//! ```

use super::{bound, pairs};
use crate::entropy_bonus::{EntropyBonus, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> = Rule::new(
    Pitfall::Aggregation,
    &["empty-row-divides-by-zero", "empty-rows-counted", "empty-rows-skipped", "mask-ignored"],
    check,
);

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let rows = EntropyBonus::rows(probe.case);
    let order: Vec<usize> = (0..rows).chain([0]).collect();
    let mut more = EntropyBonus::take(probe.case, &order);
    more.mask.row_mut(rows).fill(false);
    more.logits.index_axis_mut(ndarray::Axis(0), rows).fill(0.5);
    let before = probe.output()?;
    let after = probe.call(&more)?;
    let Options { aggregate, empty_rows, .. } = *probe.options;
    let counted = match (aggregate, empty_rows) {
        (Aggregate::TokenMean | Aggregate::TokenSum, _) | (_, EmptyRows::Skip) => 1.0,
        (_, EmptyRows::Count) => rows as f64 / (rows + 1) as f64,
    };
    let expected = [probe.expected().to_vec(), probe.expected_of(&more)];
    for (name, before, after) in pairs(&before.output, &after, probe.options) {
        let [own, other] = [&expected[0], &expected[1]].map(|one| bound(probe, one, name));
        let what = format_args!("with one more row, without a token, {name}");
        near(what, after, counted * before, own + other)?;
    }
    Ok(())
}
