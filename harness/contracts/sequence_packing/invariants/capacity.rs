//! Rows are as wide as declared.
//!
//! ### Claim
//! A row has `capacity` tokens, padding included; with `width: needed` that many at most.
//!
//! ### Why it matters
//! The number is set to what a step can hold, and compiled kernels take one shape only. A row that
//! is longer runs out of memory, or past the last position that the model knows.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Separators that are added after the packing, and counted by nobody.
//!
//! ### Example
//! ```diff
//! -    shape = len(rows), max(sum(end - begin for _, begin, end in pieces) for pieces in rows)
//! +    shape = len(rows), capacity
//! ```

use crate::sequence_packing::{SequencePacking, Width};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SequencePacking> = Rule::new(
    Pitfall::Configuration,
    &[
        "separator-inserted",
        "width-needed",
        "width-of-two-rows",
        "width-a-multiple-of-eight",
        "longest-document-packed-uncut",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SequencePacking>) -> Outcome {
    let returned = probe.finite_output()?;
    let (found, capacity) = (returned.output.packed.ncols(), probe.options.capacity as usize);
    match probe.options.width {
        Width::Capacity if found != capacity => {
            broken!("rows have {found} tokens, expected {capacity}")
        }
        Width::Needed if found > capacity => {
            broken!("rows have {found} tokens, expected at most {capacity}")
        }
        _ => Ok(()),
    }
}
