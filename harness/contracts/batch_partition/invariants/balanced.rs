//! The parts have about as many tokens.
//!
//! ### Claim
//! No part has more tokens than the mean of the parts and the longest row together.
//!
//! ### Why it matters
//! A step takes as long as its slowest worker, and as much memory as its largest micro-batch. Who
//! deals out rows without a look at their lengths pays the worst case in each step.
//!
//! ### Does not hold for
//! `balance: false`; `equal_size` and `contiguous` together, which leave one partition only; parts
//! that are balanced by something else than tokens.
//!
//! ### Bugs it has caught
//! Rows sorted by length whose parts come back in sorted order: row 0 gets the part of the longest.
//!
//! ### Example
//! ```diff
//!      for part, rows in enumerate(bins):
//! -        part_of[rows] = part
//! +        part_of[order[rows]] = part
//! ```

use super::{lengths_of, parts};
use crate::batch_partition::{BatchPartition, Mode};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> = Rule::new(
    Pitfall::Configuration,
    &[
        "dealt-in-turn",
        "parts-in-sorted-order",
        "as-many-rows-a-part",
        "squares-in-32-bits",
        "longest-to-the-fullest",
        "balanced-by-values",
        "rest-to-the-last-part",
    ],
    check,
)
.under(|options| {
    options.mode == Mode::Count && options.balance && !(options.equal_size && options.contiguous)
});

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let (_, contents) = parts(probe)?;
    let (count, total) = (probe.options.parts, probe.case.lengths.sum());
    let longest = probe.case.lengths.iter().max().copied().unwrap_or(0);
    if count < 2 {
        return Err(Stop::Vacuous);
    }
    for (part, content) in &contents {
        // Whole numbers: nothing is rounded.
        if count * content.tokens > total + count * longest {
            let rows = lengths_of(probe, &content.rows);
            let (found, mean) = (content.tokens, number(total as f64 / count as f64));
            broken!(
                "part {part} has {found} tokens, {rows:?}, expected at most the mean {mean} and \
                 the longest row {longest}"
            );
        }
    }
    Ok(())
}
