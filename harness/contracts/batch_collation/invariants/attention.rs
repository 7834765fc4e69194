//! The attention mask marks tokens.
//!
//! ### Claim
//! Each row of the attention mask has as many ones, side by side, as the row has tokens left.
//!
//! ### Why it matters
//! A pad that is attended changes every token behind it; a token that is not is missing from the
//! context. Neither raises anything, and both change the log-probabilities that are trained.
//!
//! ### Does not hold for
//! Outputs without an attention mask.
//!
//! ### Bugs it has caught
//! trl #3398 and #5305: rows are filled up first and cut then, and what is left of a short one is
//! padding.
//!
//! ### Example
//! ```diff
//! -    attention_mask = (input_ids != pad).long()
//! +    attention_mask = padded([torch.ones_like(tokens) for tokens in ids], 0)
//! ```

use super::placed;
use crate::batch_collation::BatchCollation;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "last-columns-kept",
        "first-columns-kept",
        "truncation-as-a-filter",
        "attention-by-token-value",
        "completions-not-attended",
        "pads-attended",
    ],
    check,
);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let returned = probe.finite_output()?;
    let Some(mask) = &returned.output.attention_mask else { return Err(Stop::Vacuous) };
    let places = placed(probe.case, probe.options, &returned.output)?;
    for (row, flags) in mask.rows().into_iter().enumerate() {
        let (found, expected) = (flags.sum(), places.rows[row].length());
        if found != expected as f64 {
            let found = number(found);
            broken!("row {row} of attention_mask adds up to {found}, expected {expected}");
        }
        let changes = flags.windows(2).into_iter().filter(|pair| pair[0] != pair[1]).count();
        let inside = usize::from(flags[0] == 0.0) + usize::from(flags[flags.len() - 1] == 0.0);
        if changes > inside {
            broken!("row {row} of attention_mask has a gap: {}", flags);
        }
    }
    Ok(())
}
