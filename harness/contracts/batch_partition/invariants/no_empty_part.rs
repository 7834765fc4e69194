//! No part is without a row.
//!
//! ### Claim
//! Each part from 0 to the last has a row; with `mode: count` there are exactly `parts` of them.
//!
//! ### Why it matters
//! A worker without a row does not call the model: the others wait for it in a collective operation
//! until they time out. A part too many goes to a worker that there is not.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! verl #6786, #6869: chunks of ⌈N/k⌉ rows, which 9 rows fill in three of four parts.
//!
//! ### Example
//! Under `parts=4`:
//! ```diff
//! -    bins = torch.arange(len(lengths)).chunk(parts)
//! +    bins = [[] for _ in range(parts)]
//! +    for row in range(len(lengths)):
//! +        min(bins, key=lambda rows: (len(rows), lengths[rows].sum())).append(row)
//! ```

use super::parts;
use crate::batch_partition::{BatchPartition, Mode};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "ceil-chunks",
        "one-part-for-all",
        "one-part-short",
        "one-part-more",
        "numbered-from-one",
        "numbered-by-the-first-row",
        "packed-into-empty-parts",
    ],
    check,
);

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let (_, contents) = parts(probe)?;
    let last = *contents.keys().last().ok_or(Stop::Vacuous)?;
    if let Some(empty) = (0..last).find(|part| !contents.contains_key(part)) {
        broken!("part {empty} has no row, and part {last} has one");
    }
    let (found, expected) = (last + 1, probe.options.parts);
    if probe.options.mode == Mode::Count && found as i64 != expected {
        broken!("there are {found} parts with a row, expected {expected}");
    }
    Ok(())
}
