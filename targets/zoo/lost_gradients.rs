//! open-instruct #1498: the optimizer is told of no boundary, and takes the gradient of the last
//! micro-batch alone; the reported loss is right.

use shakedown::contracts::accumulated_loss::{
    AccumulatedLoss, AccumulatedLossCase, MicroBatch, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "open-instruct #1498 (48664c504)",
    place: Place::CPU_F32,
    found_by: &["gradient", "partition", "gradient-sums-to-one"],
    fault: "only-the-last-micro-batch",
    check: |bug, budget| bug.check_on::<AccumulatedLoss>(answer, Options::default(), budget),
};

fn answer(case: &AccumulatedLossCase<Tensors>) -> Tensor {
    let parts: Vec<_> = case.micro_batches.iter().map(sum_and_count).collect();
    let count = parts.iter().map(|(_, count)| count).sum::<Tensor>().clamp_min(1.0);
    let last = parts.len() - 1;
    // Mended: sum / &count
    let kept = |(part, (sum, _)): (usize, &(Tensor, Tensor))| {
        if part == last { sum / &count } else { sum.detach() / &count }
    };
    parts.iter().enumerate().map(kept).sum::<Tensor>()
}

/// The sum of the losses of a micro-batch, and how many tokens it has.
fn sum_and_count(part: &MicroBatch<Tensors>) -> (Tensor, Tensor) {
    let count = part.mask.sum(part.token_losses.kind());
    (under(&part.mask, &part.token_losses).sum(None), count)
}
