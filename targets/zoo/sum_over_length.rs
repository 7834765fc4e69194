//! verl #931: `seq-mean-token-sum` divides the sum of a row by its length.

use shakedown::author::aggregate::Aggregate;
use shakedown::contracts::policy_loss::{Options, PolicyLoss, PolicyLossCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "verl #931 (4d722b176)",
    place: Place::CPU_F32,
    found_by: &["oracle", "gradient", "on-policy-loss", "on-policy-gradient", "at-least-unclipped"],
    fault: "token-sum-divided-by-length",
    check: |bug, budget| {
        let options = Options { aggregate: Aggregate::SeqMeanTokenSum, ..Options::default() };
        bug.check_on::<PolicyLoss>(answer, options, budget)
    },
};

fn answer(case: &PolicyLossCase<Tensors>) -> Tensor {
    let mask = &case.mask;
    let counted = |numbers: &Tensor| under(mask, numbers);
    let ratio = counted(&(&case.log_probs - &case.old_log_probs)).exp();
    let advantages = counted(&case.advantages);
    let clipped = -&advantages * ratio.clamp(0.8, 1.2);
    let losses = counted(&(-&advantages * &ratio).maximum(&clipped));
    let lengths = mask.sum_dim_intlist(1, false, losses.kind());
    let rows = lengths.gt(0.0).sum(losses.kind());
    // Mended: without the division
    let sums = losses.sum_dim_intlist(1, false, None) / lengths.clamp_min(1.0);
    sums.sum(None) / rows.clamp_min(1.0)
}
