//! The completion mask marks the completion.
//!
//! ### Claim
//! The completion mask is 1 at the tokens of the completion that are left, and only there.
//!
//! ### Why it matters
//! Losses are taken under this mask. An offset that is applied twice, or not moved along when a row
//! is cut, trains part of the prompt and loses part of the answer.
//!
//! ### Does not hold for
//! Outputs without a completion mask.
//!
//! ### Bugs it has caught
//! trl #1718: the prompt's offset is applied to a mask that begins at the response. slime
//! 6b4ccae5d: `x[-0:]` is all of x, and an empty answer takes its prompt.
//!
//! ### Example
//! ```diff
//! -        mask[-length:] = 1
//! +        mask[begin:] = 1
//! ```

use super::{expect, placed};
use crate::batch_collation::BatchCollation;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "response-mask-sliced-twice",
        "empty-answer-takes-everything",
        "second-half-unmasked",
        "boundary-stays",
        "boundary-one-late",
        "boundary-one-early",
        "prompts-marked",
        "boundary-of-the-first-row",
        "boundary-of-the-longest-prompt",
    ],
    check,
);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let returned = probe.finite_output()?;
    let Some(mask) = &returned.output.completion_mask else { return Err(Stop::Vacuous) };
    let places = placed(probe.case, probe.options, &returned.output)?;
    for ((row, column), _) in mask.indexed_iter() {
        let token = places.token(row, column);
        let (expected, why) = match token {
            Some((_, true)) => (1.0, "the column has a token of the completion"),
            Some((_, false)) => (0.0, "the column has a token of the prompt"),
            None => (0.0, "the column has no token"),
        };
        expect("completion_mask", mask, (row, column), expected, || why.to_owned())?;
    }
    Ok(())
}
