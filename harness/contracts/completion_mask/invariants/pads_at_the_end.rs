//! How far a batch is filled up makes no difference.
//!
//! ### Claim
//! Columns of pads at the end change nothing in the columns before them, and do not count.
//!
//! ### Why it matters
//! How wide a batch is depends on its longest row. A mask that depends on the width changes with
//! the other rows, with the batch size and with the multiple to which tensors are padded.
//!
//! ### Does not hold for
//! The new columns of rows without an eos under `unfinished: all`; rows without an eos where the
//! pad is one, and ends them.
//!
//! ### Bugs it has caught
//! verl #3805: a row that was cut off counts its pads. trlx #420: a row that is filled up has no
//! end in its last column.
//!
//! ### Example
//! Under `unfinished="drop"`:
//! ```diff
//! -    finished = is_eos[:, -1:]
//! +    finished = is_eos.any(dim=1, keepdim=True)
//! ```

use ndarray::Array2;

use super::{expect_flag, expect_kept, rows};
use crate::completion_mask::{CompletionMask, CompletionMaskCase, Unfinished};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionMask> = Rule::new(
    Pitfall::MaskingAlignment,
    &["unfinished-row-counts-pads", "eos-test-on-the-last-column", "every-eos-is-padding"],
    check,
);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let options = probe.options;
    let before = probe.finite_output()?;
    let (count, columns) = probe.case.tokens.dim();
    let more = 1 + probe.pick.below(3);
    let tokens = Array2::from_shape_fn((count, columns + more), |at| {
        probe.case.tokens.get(at).copied().unwrap_or(options.pad)
    });
    let padded = CompletionMaskCase { tokens };
    let after = probe.call(&padded)?.mask;
    let what = format!("with {more} columns of pads more");
    let mut checked = false;
    for (row, _, first) in rows(probe.case, options) {
        if first.is_none() && options.pad_is_eos() {
            continue;
        }
        for token in 0..columns {
            expect_kept(before.output.mask[[row, token]], &after, (row, token), &what)?;
        }
        if first.is_some() || options.unfinished != Unfinished::All {
            for token in columns..columns + more {
                expect_flag(&after, (row, token), false, || {
                    "it is one of the new pads".to_owned()
                })?;
            }
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
