//! Sequences in one row do not see each other.
//!
//! ### Claim
//! A sequence in a row of its own has the logits that it has behind others in one row.
//!
//! ### Why it matters
//! Packed rows save padding. Without a mask between the sequences, each is trained behind a text
//! that has nothing to do with it; without positions of its own, at positions that it never has.
//!
//! ### Does not hold for
//! `packed: false`.
//!
//! ### Bugs it has caught
//! transformers #46634: an attention mask of ones beside `position_ids` let the sequences see each
//! other. nanoVLM #204: a sequence began behind the position of the one before.
//!
//! ### Example
//! Under `positions="given", packed=True`:
//! ```diff
//! -    seen = seen & attention_mask[:, :, None]
//! +    seen = seen & (sequence[:, :, None] == sequence[:, None, :])
//! ```

use super::same;
use crate::model_forward::{ModelForward, Row, case_of, rows as rows_of};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ModelForward> = Rule::new(
    Pitfall::MaskingAlignment,
    &["packed-sequences-seen", "last-sequence-seen", "position-ids-ignored"],
    check,
)
.under(|options| options.packed);

fn check(probe: &mut Probe<'_, ModelForward>) -> Outcome {
    let packed: Vec<(usize, Row)> = rows_of(probe.case).into_iter().enumerate().collect();
    let packed: Vec<_> = packed.into_iter().filter(|(_, row)| row.sequences.len() > 1).collect();
    if packed.is_empty() {
        return Err(Stop::Vacuous);
    }
    let whole = probe.output()?;
    let (row, Row { before, sequences }) = probe.pick.one(&packed).clone();
    let sequence = 1 + probe.pick.below(sequences.len() - 1);
    let from = before + sequences[..sequence].concat().len();
    let length = sequences[sequence].len();
    let alone = Row { before: 0, sequences: vec![sequences[sequence].clone()] };
    let alone = probe.call(&case_of(&[alone], probe.options, 0))?;
    let at: Vec<_> = (0..length).map(|column| [(row, from + column), (0, column)]).collect();
    let what = format!("sequence {sequence} of row {row} in a row of its own:");
    same(probe, &what, "logits", &alone.logits, &whole.output.logits, &at)
}
