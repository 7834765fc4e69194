//! Masked columns at the end of a shard change nothing.
//!
//! ### Claim
//! Appending masked columns to the shards, to each its own number, changes nothing.
//!
//! ### Why it matters
//! Each shard is as wide as its longest row. A metric that depends on the width depends on who
//! else is on the rank.
//!
//! ### Does not hold for
//! Nothing: no `unit` knows the width.
//!
//! ### Bugs it has caught
//! AReaL #990: the denominator was the number of elements, padding included. verl #3741: a row
//! divided by the width of its batch.
//!
//! ### Example
//! ```diff
//! -    mean = total / sum(shard["mask"].numel() for shard in shards)
//! +    mean = total / count
//! ```

use ndarray::{Axis, Slice};

use super::{unmoved, with_numbers};
use crate::metric_reduction::MetricReduction;
use crate::metric_reduction::generate::taken;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "mask-ignored",
        "ones-for-tokens",
        "integer-mask-as-index",
        "pads-among-the-extremes",
        "pads-in-the-deviation",
        "row-mean-over-its-width",
    ],
    check,
);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_numbers(probe)?;
    let mut padded = probe.case.clone();
    let mut columns = Vec::new();
    let wider = probe.pick.below(padded.shards.len());
    for (index, part) in padded.shards.iter_mut().enumerate() {
        let width = part.mask.ncols();
        let more = probe.pick.below(3) + usize::from(index == wider);
        let kept: Vec<usize> = (0..width).chain(vec![width - 1; more]).collect();
        *part = taken(part, Axis(1), &kept);
        part.mask.slice_axis_mut(Axis(1), Slice::from(width..)).fill(false);
        let mut pads = part.values.slice_axis_mut(Axis(1), Slice::from(width..));
        // What could not be scored is NaN, and may not stand under every mask.
        pads.mapv_inplace(|x| if x.is_nan() { 1.0 } else { x });
        columns.push(more);
    }
    unmoved(probe, &padded, &format!("with {columns:?} more masked columns"))
}
