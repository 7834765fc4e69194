//! There are not many more parts than are needed.
//!
//! ### Claim
//! There are at most 2·⌊tokens / `capacity`⌋ + 1 parts, and those that other options ask for.
//!
//! ### Why it matters
//! Each part is a forward and a backward pass. A packer that leaves parts half empty is as slow as
//! none, and its batches look the same.
//!
//! ### Does not hold for
//! `mode: count`. The bound is raised to `min_parts`, rounded up to `multiple_of`, and one larger
//! for each row that stands alone; first fit and next fit keep it, and nobody has to do better.
//!
//! ### Bugs it has caught
//! Packers that count each row as half a part at least.
//!
//! ### Example
//! Under `mode="capacity"`:
//! ```diff
//!          bins[-1].append(row)
//! -        room -= lengths.max()
//! +        room -= length
//! ```

use super::parts;
use crate::batch_partition::oracle::most_parts;
use crate::batch_partition::{BatchPartition, Mode};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> = Rule::new(
    Pitfall::Configuration,
    &["half-full", "a-part-for-each-row", "longest-row-counted-for-each"],
    check,
)
.under(|options| options.mode == Mode::Capacity);

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let (_, contents) = parts(probe)?;
    let (found, most) = (contents.len(), most_parts(probe.case, probe.options));
    if found as i64 > most {
        let (tokens, capacity) = (probe.case.lengths.sum(), probe.options.capacity);
        broken!("{tokens} tokens are in {found} parts of {capacity}, expected at most {most}");
    }
    Ok(())
}
