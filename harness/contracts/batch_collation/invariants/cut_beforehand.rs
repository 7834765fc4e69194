//! A row is cut by itself, before it is filled up.
//!
//! ### Claim
//! Rows that were cut to `max_length` before give what the longer ones give.
//!
//! ### Why it matters
//! Cutting after filling up cuts the padding of short rows, or their tokens, by the length of the
//! longest. The right order was lost twice in one library, a year apart.
//!
//! ### Does not hold for
//! Batches in which no row is longer than `max_length`, or of which no prompt is left; other limits
//! than that of the whole row.
//!
//! ### Bugs it has caught
//! trl #3398, #5305: the last columns of the padded batch are kept. axolotl #3401: a row that is
//! cut is thrown away.
//!
//! ### Example
//! Under `max_length=4, truncate="keep-end"`:
//! ```diff
//! +        rows = [row[kept] for row in rows]
//!          batch = pad_sequence(rows, batch_first=True, padding_value=value, padding_side=layout)
//! -        batch = batch[:, kept]
//! ```

use super::{Row, expect_same, of_row, placed, rows_of};
use crate::batch_collation::{BatchCollation, Truncate, case_of};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::MaskingAlignment,
    &["last-columns-kept", "truncation-as-a-filter", "the-other-end-cut", "boundary-stays"],
    check,
)
.under(|options| options.max_length.is_some() && options.truncate != Truncate::Refuse);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let before = probe.finite_output()?;
    let rows = rows_of(probe.case);
    let cut: Vec<Row> = rows.iter().map(|row| row.cut(probe.options)).collect();
    if cut == rows || cut.iter().any(|row| row.prompt.is_empty()) {
        return Err(Stop::Vacuous);
    }
    let shorter = case_of(&cut, probe.options, [0, 0]);
    let after = probe.call(&shorter)?;
    let places = placed(probe.case, probe.options, &before.output)?;
    placed(&shorter, probe.options, &after)?;
    for row in 0..rows.len() {
        let [before, after] = [&before.output, &after].map(|of| of_row(of, &places, row, row));
        expect_same(&before, &after, &format!("with rows that were cut before, row {row}"))?;
    }
    Ok(())
}
