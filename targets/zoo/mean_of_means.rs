//! transformers #34191: each micro-batch is averaged over its own tokens, and the means are
//! averaged: a token of a short micro-batch weights more.

use shakedown::contracts::accumulated_loss::{
    AccumulatedLoss, AccumulatedLossCase, MicroBatch, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "transformers #34191",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "gradient",
        "partition",
        "constant-loss",
        "empty-micro-batch",
        "gradient-sums-to-one",
    ],
    fault: "mean-of-micro-batch-means",
    check: |bug, budget| bug.check_on::<AccumulatedLoss>(answer, Options::default(), budget),
};

fn answer(case: &AccumulatedLossCase<Tensors>) -> Tensor {
    let parts: Vec<_> = case.micro_batches.iter().map(sum_and_count).collect();
    let micro_batches = parts.len() as f64;
    // Mended: the sum of the sums, over the sum of the counts
    let means = parts.iter().map(|(sum, count)| sum / count.clamp_min(1.0));
    means.sum::<Tensor>() / micro_batches
}

/// The sum of the losses of a micro-batch, and how many tokens it has.
fn sum_and_count(part: &MicroBatch<Tensors>) -> (Tensor, Tensor) {
    let count = part.mask.sum(part.token_losses.kind());
    (under(&part.mask, &part.token_losses).sum(None), count)
}
