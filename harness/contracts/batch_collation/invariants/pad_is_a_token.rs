//! A token whose id is that of the pad is a token.
//!
//! ### Claim
//! Another id in place of a token that has the pad's changes that id and its label, nothing else.
//!
//! ### Why it matters
//! Many tokenizers pad with the end of the sequence. Who finds padding by its id loses the end of
//! every answer, and models that never saw one trained do not stop.
//!
//! ### Does not hold for
//! Batches in which no token has the id of the pad.
//!
//! ### Bugs it has caught
//! trl #3200 and #2793: labels and masks are 0 wherever the id is that of the pad.
//!
//! ### Example
//! ```diff
//! -        "labels": input_ids.where((completion_mask == 1) & (input_ids != pad), ignore),
//! +        "labels": input_ids.where(completion_mask == 1, ignore),
//! ```

use super::{expect_same, of_row, placed, rows_of};
use crate::batch_collation::{BatchCollation, case_of};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::MaskingAlignment,
    &["pad-tokens-untrained", "attention-by-token-value", "lengths-by-token-value"],
    check,
);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let pad = probe.options.pad;
    let before = probe.finite_output()?;
    let mut rows = rows_of(probe.case);
    let other = (1..).find(|id| *id != pad && *id != probe.options.ignore).expect("there are many");
    for row in &mut rows {
        for id in row.prompt.iter_mut().chain(&mut row.completion) {
            *id = if *id == pad { other } else { *id };
        }
    }
    if rows == rows_of(probe.case) {
        return Err(Stop::Vacuous);
    }
    let changed = case_of(&rows, probe.options, [0, 0]);
    let after = probe.call(&changed)?;
    let places = placed(probe.case, probe.options, &before.output)?;
    placed(&changed, probe.options, &after)?;
    for row in 0..rows.len() {
        let masks = |output, at| {
            let mut of_row = of_row(output, &places, row, at);
            of_row.retain(|(name, _)| !["input_ids", "labels"].contains(name));
            of_row
        };
        let (before, after) = (masks(&before.output, row), masks(&after, row));
        expect_same(&before, &after, &format!("with {other} for the pad's id, row {row}"))?;
    }
    let ignored = probe.options.ignore as f64;
    if let (Some(before), Some(after)) = (&before.output.labels, &after.labels) {
        for ((at, before), after) in before.indexed_iter().zip(after) {
            if *before != ignored && pad as f64 == ignored {
                return Err(Stop::Vacuous);
            }
            if (*before == ignored) != (*after == ignored) {
                let [before, after] = [*before, *after].map(number);
                broken!(
                    "with {other} for the pad's id, labels[{}, {}] is {after}, before it was \
                     {before}",
                    at.0,
                    at.1
                );
            }
        }
    }
    Ok(())
}
