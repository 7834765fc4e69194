//! A batch is as wide as its longest row.
//!
//! ### Claim
//! There are as many columns as the longest row has tokens, or the next multiple.
//!
//! ### Why it matters
//! Columns of pads cost as much as tokens do. And a width that is not that of the longest row comes
//! from somewhere else: the inputs, the limit, another row; the next batch is cut by it.
//!
//! ### Does not hold for
//! Batches that are filled up to a fixed length on purpose.
//!
//! ### Bugs it has caught
//! Widths rounded up where they are a multiple already: one more block of pads in each batch.
//!
//! ### Example
//! Under `multiple_of=4`:
//! ```diff
//! -        more = multiple_of - batch.shape[1] % multiple_of
//! +        more = -batch.shape[1] % (multiple_of or 1)
//! ```

use crate::batch_collation::BatchCollation;
use crate::batch_collation::oracle::Places;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::PurityShapeDtype,
    &[
        "as-wide-as-the-inputs",
        "rounded-past-a-multiple",
        "multiple-ignored",
        "longest-of-each-side",
        "filled-up-to-the-limit",
        "filled-up-and-not-cut",
        "one-length-checked",
    ],
    check,
);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let returned = probe.output()?;
    let Places { rows, width, .. } = Places::of(probe.case, probe.options);
    for (name, array) in returned.output.given() {
        let found = array.ncols();
        if found != width {
            let longest = rows.iter().map(|row| row.length()).max().unwrap_or(0);
            broken!(
                "`{name}` has {found} columns, expected {width}: the longest row has {longest} \
                 tokens"
            );
        }
    }
    Ok(())
}
