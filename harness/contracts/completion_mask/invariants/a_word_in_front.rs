//! Where a row begins makes no difference to where it ends.
//!
//! ### Claim
//! A word put in front of a row counts, and moves the flags of the others by one.
//!
//! ### Why it matters
//! Position 0 is where code with indices goes wrong: 0 is also what a search gives that found
//! nothing, and what is false.
//!
//! ### Does not hold for
//! Rows without an eos under `unfinished: drop`, where nothing counts with the word in front
//! either.
//!
//! ### Bugs it has caught
//! `argmax` over the ends of a row that has none; an end at position 0 taken for no end.
//!
//! ### Example
//! ```diff
//! -    finished = is_eos.int().argmax(dim=1, keepdim=True) > 0
//! +    finished = is_eos.any(dim=1, keepdim=True)
//! ```

use ndarray::Array2;

use super::{expect_flag, expect_kept, rows};
use crate::completion_mask::{CompletionMask, CompletionMaskCase, Unfinished};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionMask> = Rule::new(
    Pitfall::MaskingAlignment,
    &["no-eos-taken-for-the-first-token", "eos-at-the-first-token-overlooked"],
    check,
);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let options = probe.options;
    let before = probe.finite_output()?;
    let (count, columns) = probe.case.tokens.dim();
    let word = (0..).find(|id| options.is_word(*id)).expect("there are many words");
    let tokens = Array2::from_shape_fn((count, columns + 1), |(row, token)| match token {
        0 => word,
        _ => probe.case.tokens[[row, token - 1]],
    });
    let longer = CompletionMaskCase { tokens };
    let after = probe.call(&longer)?.mask;
    let what = format!("with a word in front ({word})");
    for (row, _, first) in rows(probe.case, options) {
        let counts = first.is_some() || options.unfinished != Unfinished::Drop;
        expect_flag(&after, (row, 0), counts, || format!("the word in front is {word}"))?;
        for token in 0..columns {
            expect_kept(before.output.mask[[row, token]], &after, (row, token + 1), &what)?;
        }
    }
    Ok(())
}
