//! No part holds more tokens than it may.
//!
//! ### Claim
//! No part has more than `capacity` tokens, but for one row that is longer and stands alone.
//!
//! ### Why it matters
//! The number is set to what fits into memory. A part that is larger once in a thousand steps ends
//! a run after a day, and never in a test.
//!
//! ### Does not hold for
//! `mode: count`. Functions that take the capacity for a target (⌈tokens / capacity⌉ parts,
//! balanced) promise less: they are partitions into so many parts.
//!
//! ### Bugs it has caught
//! Rows that are packed in sorted order, and answered in it.
//!
//! ### Example
//! Under `mode="capacity"`:
//! ```diff
//! -        if room <= 0:
//! +        if length > room:
//!              bins.append([])
//! ```

use super::{lengths_of, parts};
use crate::batch_partition::{BatchPartition, Mode};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> = Rule::new(
    Pitfall::Configuration,
    &[
        "bins-in-sorted-order",
        "as-many-parts-as-fit-on-average",
        "closed-after-it-overflows",
        "opening-row-not-counted",
        "rows-counted-for-tokens",
        "oversized-row-in-company",
        "multiple-rounded-down",
        "last-two-parts-merged",
    ],
    check,
)
.under(|options| options.mode == Mode::Capacity);

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let (_, contents) = parts(probe)?;
    let capacity = probe.options.capacity;
    for (part, content) in &contents {
        if content.rows.len() > 1 && content.tokens > capacity {
            let (found, rows) = (content.tokens, lengths_of(probe, &content.rows));
            broken!("part {part} has {found} tokens, {rows:?}, expected at most {capacity}");
        }
    }
    Ok(())
}
