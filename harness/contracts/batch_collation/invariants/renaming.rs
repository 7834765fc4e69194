//! What a token is makes no difference to where it stands.
//!
//! ### Claim
//! Other ids for the tokens of a batch give these ids, at the same places, and nothing else new.
//!
//! ### Why it matters
//! Collation moves ids around and looks at none of them. Code that does has the ids of one
//! tokenizer built in, or holds them in a format that is too small for the next vocabulary.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! trl #1284 and #1692: rows are filled up with 0, whatever the tokenizer says.
//!
//! ### Example
//! Under `pad=3`:
//! ```diff
//! -    input_ids = padded(ids, 0)
//! +    input_ids = padded(ids, pad)
//! ```

use super::{expect, placed, rows_of};
use crate::batch_collation::{BatchCollation, case_of};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["ids-in-sixteen-bits", "pad-is-zero", "lengths-by-token-value"],
    check,
);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let mut rows = rows_of(probe.case);
    for row in &mut rows {
        for id in row.prompt.iter_mut().chain(&mut row.completion) {
            *id = *probe.pick.one(&[0, 1, 2, 3, 7, 50_256, 70_000, 199_999, probe.options.pad]);
        }
    }
    let renamed = case_of(&rows, probe.options, [0, 0]);
    let after = probe.call(&renamed)?;
    let Some(ids) = &after.input_ids else { return Err(Stop::Vacuous) };
    let places = placed(&renamed, probe.options, &after)?;
    for ((row, column), _) in ids.indexed_iter() {
        let (expected, why) = match places.token(row, column) {
            Some((at, _)) => (places.id(row, at), "that token stands there"),
            None => (probe.options.pad, "it is padding"),
        };
        let why = || format!("with other ids, {why}");
        expect("input_ids", ids, (row, column), expected as f64, why)?;
    }
    Ok(())
}
