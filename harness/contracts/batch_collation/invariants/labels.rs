//! Every trained token that is left has its label, and nothing else has one.
//!
//! ### Claim
//! Each trained token that is left has a label, its id, in its column or the one before.
//!
//! ### Why it matters
//! Labels are what is trained. A prompt with labels teaches the model to ask; an end of a sequence
//! without one, because its id is that of the pad, teaches it never to stop.
//!
//! ### Does not hold for
//! Batches in which a token has the id that `ignore` is; under `shift: next` the label of a row's
//! first token, which stands before the row.
//!
//! ### Bugs it has caught
//! OpenRLHF #294: the prompts of the second half of the batch are trained. slime 6b4ccae5d: an
//! empty answer trains its prompt.
//!
//! ### Example
//! ```diff
//! -        "labels": input_ids.where(attention_mask == 1, ignore),
//! +        "labels": input_ids.where(completion_mask == 1, ignore),
//! ```

use super::{placed, rows_of};
use crate::batch_collation::{BatchCollation, Shift};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "second-half-unmasked",
        "empty-answer-takes-everything",
        "pad-tokens-untrained",
        "labels-padded-with-the-pad",
        "prompts-labelled-with-the-pad",
        "prompts-trained",
        "prompts-not-trained",
        "last-token-untrained",
        "labels-in-their-own-column",
        "labels-shifted-twice",
        "labels-shifted-the-other-way",
        "first-label-behind-the-last",
    ],
    check,
);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let options = probe.options;
    let returned = probe.finite_output()?;
    let Some(labels) = &returned.output.labels else { return Err(Stop::Vacuous) };
    let places = placed(probe.case, options, &returned.output)?;
    let of_rows = rows_of(probe.case);
    let mut ids = of_rows.iter().flat_map(|row| row.prompt.iter().chain(&row.completion));
    if ids.any(|id| *id == options.ignore) {
        return Err(Stop::Vacuous);
    }
    let later = usize::from(options.shift == Shift::Next);
    let ignored = options.ignore as f64;
    for (row, of_row) in labels.rows().into_iter().enumerate() {
        let mut expected = 0;
        let mut found = 0;
        for column in 0..places.width {
            if places.label_is_open(row, column, options) {
                continue;
            }
            let trained = places.trained(row, column + later, options);
            expected += usize::from(trained.is_some());
            found += usize::from(of_row[column] != ignored);
        }
        if found != expected {
            broken!("row {row} of labels has {found} labels, expected {expected}");
        }
        for column in 0..places.width {
            let open = places.label_is_open(row, column, options);
            if open || of_row[column] == ignored {
                continue;
            }
            let id = places.token(row, column + later).map(|(at, _)| places.id(row, at));
            if id.map(|id| id as f64) != Some(of_row[column]) {
                let label = number(of_row[column]);
                let id = id.map_or("no token".to_owned(), |id| format!("the id {id}"));
                broken!("labels[{row}, {column}] is {label}, in column {} is {id}", column + later);
            }
        }
    }
    Ok(())
}
