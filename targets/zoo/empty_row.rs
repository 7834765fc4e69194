//! open-instruct #1685: the mean of a row without a token is 0/0, and the batch with it.

use shakedown::author::aggregate::Aggregate;
use shakedown::author::conventions::{EmptyMask, EmptyRows};
use shakedown::contracts::policy_loss::{Options, PolicyLoss, PolicyLossCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "open-instruct #1685 (94a17b99a)",
    place: Place::CPU_F32,
    found_by: &[
        "finite",
        "oracle",
        "on-policy-loss",
        "zero-advantage",
        "linear-in-advantages",
        "log-prob-shift",
        "empty-row",
        "rows-doubled",
    ],
    fault: "empty-row-divides-by-zero",
    check: |bug, budget| {
        let options = Options {
            aggregate: Aggregate::SeqMeanTokenMean,
            empty_mask: EmptyMask::Avoid,
            empty_rows: EmptyRows::Count,
            ..Options::default()
        };
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
    // Mended: mask.sum_dim_intlist(1, false, losses.kind()).clamp_min(1.0)
    let lengths = mask.sum_dim_intlist(1, false, losses.kind());
    (losses.sum_dim_intlist(1, false, None) / lengths).mean(None)
}
