//! There are as many parts as workers need.
//!
//! ### Claim
//! With `mode: capacity` there are `min_parts` parts at least, and a multiple of `multiple_of`.
//!
//! ### Why it matters
//! Micro-batches are dealt out to data-parallel ranks and pipeline stages. One too few leaves a
//! rank without work, and a collective operation waiting for it.
//!
//! ### Does not hold for
//! `mode: count`.
//!
//! ### Bugs it has caught
//! AReaL a51fec442: the number grows by the multiple from where it starts, and never becomes one.
//!
//! ### Example
//! Under `mode="capacity", min_parts=3, multiple_of=2`:
//! ```diff
//! -    wanted = max(len(bins) + -len(bins) % multiple_of, min_parts)
//! +    wanted = max(len(bins), min_parts)
//! +    wanted += -wanted % multiple_of
//! ```

use super::parts;
use crate::batch_partition::{BatchPartition, Mode};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> = Rule::new(
    Pitfall::Configuration,
    &["min-parts-ignored", "multiple-ignored", "multiple-before-the-least"],
    check,
)
.under(|options| {
    options.mode == Mode::Capacity && (options.min_parts > 1 || options.multiple_of > 1)
});

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let (_, contents) = parts(probe)?;
    let (found, least) = (contents.len() as i64, probe.options.min_parts);
    let multiple = probe.options.multiple_of;
    if found < least {
        broken!("there are {found} parts, expected at least {least}");
    }
    if found % multiple != 0 {
        broken!("there are {found} parts, expected a multiple of {multiple}");
    }
    Ok(())
}
