//! transformers #35438: the losses of the step are divided by the token count of its first micro-
//! batch.

use shakedown::contracts::accumulated_loss::{
    AccumulatedLoss, AccumulatedLossCase, MicroBatch, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "transformers #35438, #34373",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "gradient",
        "partition",
        "constant-loss",
        "order-of-micro-batches",
        "empty-micro-batch",
        "duplicated",
        "gradient-sums-to-one",
    ],
    fault: "count-of-one-sub-step",
    check: |bug, budget| bug.check_on::<AccumulatedLoss>(answer, Options::default(), budget),
};

fn answer(case: &AccumulatedLossCase<Tensors>) -> Tensor {
    let parts: Vec<_> = case.micro_batches.iter().map(sum_and_count).collect();
    // Mended: parts.iter().map(|(_, count)| count).sum::<Tensor>()
    let count = parts[0].1.shallow_clone();
    parts.iter().map(|(sum, _)| sum).sum::<Tensor>() / count.clamp_min(1.0)
}

/// The sum of the losses of a micro-batch, and how many tokens it has.
fn sum_and_count(part: &MicroBatch<Tensors>) -> (Tensor, Tensor) {
    let count = part.mask.sum(part.token_losses.kind());
    (under(&part.mask, &part.token_losses).sum(None), count)
}
