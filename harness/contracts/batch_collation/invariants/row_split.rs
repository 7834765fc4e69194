//! Rows have nothing but the width in common.
//!
//! ### Claim
//! A batch gives what its rows give one at a time, but for padding.
//!
//! ### Why it matters
//! What is trained of a row must not depend on which others happen to be in its batch, or results
//! change with the batch size and with the order of the data.
//!
//! ### Does not hold for
//! Batches of one row; what stands in padding.
//!
//! ### Bugs it has caught
//! trl #3398: a short row loses its tokens if there is a long one. OpenRLHF #294: which half of the
//! batch a row is in decides whether its prompt is trained.
//!
//! ### Example
//! ```diff
//! -        mask[prompt_lengths.max() :] = 1
//! +        mask[begin:] = 1
//! ```

use super::{expect_same, of_row, placed, rows_of};
use crate::batch_collation::{BatchCollation, case_of};
use shakedown_core::contract::prelude::*;

/// At most this many rows are called on their own.
const ROWS: usize = 4;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "last-columns-kept",
        "second-half-unmasked",
        "boundary-of-the-first-row",
        "boundary-of-the-longest-prompt",
        "sorted-by-length",
        "positions-by-column",
    ],
    check,
);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let rows = rows_of(probe.case);
    if rows.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let whole = probe.finite_output()?;
    let places = placed(probe.case, probe.options, &whole.output)?;
    let mut checked = false;
    for row in probe.pick.shuffled(rows.len()).into_iter().take(ROWS) {
        let alone = case_of(&rows[row..=row], probe.options, [0, 0]);
        let output = probe.call(&alone)?;
        let Ok(of_alone) = placed(&alone, probe.options, &output) else { continue };
        checked = true;
        let in_batch = of_row(&whole.output, &places, row, row);
        let by_itself = of_row(&output, &of_alone, 0, 0);
        expect_same(&in_batch, &by_itself, &format!("row {row} alone"))?;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
