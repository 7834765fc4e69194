//! unsloth-zoo #870: the ratio of a row is the sum of the exponentials, and not the exponential
//! of the mean.

use shakedown::contracts::policy_loss::{Options, PolicyLoss, PolicyLossCase, Ratio};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "unsloth-zoo #870 (a5efee2c)",
    place: Place::CPU_F32,
    found_by: &["oracle", "gradient", "on-policy-loss", "on-policy-gradient"],
    fault: "sum-of-exponentials-as-ratio",
    check: |bug, budget| {
        let options = Options { ratio: Ratio::Sequence, ..Options::default() };
        bug.check_on::<PolicyLoss>(answer, options, budget)
    },
};

fn answer(case: &PolicyLossCase<Tensors>) -> Tensor {
    let mask = &case.mask;
    let counted = |numbers: &Tensor| under(mask, numbers);
    let log_ratio = counted(&(&case.log_probs - &case.old_log_probs));
    // Mended: (log_ratio.sum_dim_intlist(1, true, None) / lengths.clamp_min(1.0)).exp()
    let ratio = counted(&log_ratio.exp()).sum_dim_intlist(1, true, None);
    let advantages = counted(&case.advantages);
    let clipped = -&advantages * ratio.clamp(0.8, 1.2);
    let losses = counted(&(-&advantages * &ratio).maximum(&clipped));
    losses.sum(None) / mask.sum(losses.kind()).clamp_min(1.0)
}
