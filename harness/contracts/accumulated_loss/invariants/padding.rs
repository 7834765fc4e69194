//! Masked columns at the end of a micro-batch change nothing.
//!
//! ### Claim
//! Appending masked columns to the micro-batches, to each its own number, changes nothing.
//!
//! ### Why it matters
//! Each micro-batch is as wide as its longest row. A result that depends on the width depends on
//! who else is in the micro-batch.
//!
//! ### Does not hold for
//! Nothing: `norm_length` is a constant and never the width.
//!
//! ### Bugs it has caught
//! verl #3741 and understand-r1-zero 14046dc: a normaliser made of the batch's own width.
//!
//! ### Example
//! ```diff
//! -    tokens = sum(mask.numel() for mask in masks)
//! +    tokens = sum(mask.sum() for mask in masks).clamp(min=1)
//! ```

use ndarray::{Axis, Slice};

use super::{same_loss, with_tokens};
use crate::accumulated_loss::AccumulatedLoss;
use crate::accumulated_loss::generate::taken;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AccumulatedLoss> = Rule::new(
    Pitfall::MaskingAlignment,
    &["mask-ignored", "norm-length-of-the-batch", "masked-tokens-in-the-denominator"],
    check,
);

fn check(probe: &mut Probe<'_, AccumulatedLoss>) -> Outcome {
    with_tokens(probe)?;
    let mut padded = probe.case.clone();
    let mut columns = Vec::new();
    let wider = probe.pick.below(padded.micro_batches.len());
    for (index, part) in padded.micro_batches.iter_mut().enumerate() {
        let width = part.mask.ncols();
        let more = probe.pick.below(3) + usize::from(index == wider);
        let kept: Vec<usize> = (0..width).chain(vec![width - 1; more]).collect();
        *part = taken(part, Axis(1), &kept);
        part.mask.slice_axis_mut(Axis(1), Slice::from(width..)).fill(false);
        columns.push(more);
    }
    same_loss(probe, &padded, 1.0, &format!("with {columns:?} more masked columns"))
}
