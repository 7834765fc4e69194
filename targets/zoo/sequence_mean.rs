//! trl #2881: the mean over completions of each one's mean, where the mean over all tokens is
//! promised.

use shakedown::contracts::policy_loss::{Options, PolicyLoss, PolicyLossCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "trl #2881 (293b62095), #2995, #3021",
    place: Place::CPU_F32,
    found_by: &["oracle", "gradient", "on-policy-loss", "on-policy-gradient", "at-least-unclipped"],
    fault: "sequence-mean-called-token-mean",
    check: |bug, budget| bug.check_on::<PolicyLoss>(answer, Options::default(), budget),
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
    // Mended: losses.sum(None) / lengths.sum(None).clamp_min(1.0)
    let means = losses.sum_dim_intlist(1, false, None) / lengths.clamp_min(1.0);
    means.sum(None) / rows.clamp_min(1.0)
}
