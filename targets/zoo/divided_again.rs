//! unsloth-zoo #1023: losses that are divided by the token count of the step are divided by the
//! number of micro-batches too.

use shakedown::contracts::accumulated_loss::{
    AccumulatedLoss, AccumulatedLossCase, MicroBatch, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "unsloth-zoo #1023 (011e1ea0)",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "gradient",
        "partition",
        "constant-loss",
        "empty-micro-batch",
        "duplicated",
        "gradient-sums-to-one",
    ],
    fault: "divided-again-by-micro-batches",
    check: |bug, budget| bug.check_on::<AccumulatedLoss>(answer, Options::default(), budget),
};

fn answer(case: &AccumulatedLossCase<Tensors>) -> Tensor {
    let parts: Vec<_> = case.micro_batches.iter().map(sum_and_count).collect();
    let count = parts.iter().map(|(_, count)| count).sum::<Tensor>().clamp_min(1.0);
    let micro_batches = parts.len() as f64;
    // Mended: sum / &count
    parts.iter().map(|(sum, _)| sum / &count / micro_batches).sum::<Tensor>()
}

/// The sum of the losses of a micro-batch, and how many tokens it has.
fn sum_and_count(part: &MicroBatch<Tensors>) -> (Tensor, Tensor) {
    let count = part.mask.sum(part.token_losses.kind());
    (under(&part.mask, &part.token_losses).sum(None), count)
}
