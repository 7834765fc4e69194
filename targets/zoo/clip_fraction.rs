//! trl #3032: the clip fraction counts where the clipped objective is the larger one, which is
//! where the minimum does not take it.

use shakedown::contracts::policy_loss::{Options, PolicyLoss, PolicyLossCase, PolicyLossOutput};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "trl #3032, #3145 (dee37342a)",
    place: Place::CPU_F32,
    found_by: &["oracle", "clip-fraction"],
    fault: "clip-fraction-counts-the-unclipped",
    check: |bug, budget| bug.check_on::<PolicyLoss>(answer, Options::default(), budget),
};

fn answer(case: &PolicyLossCase<Tensors>) -> PolicyLossOutput<Tensors> {
    let mask = &case.mask;
    let counted = |numbers: &Tensor| under(mask, numbers);
    let ratio = counted(&(&case.log_probs - &case.old_log_probs)).exp();
    let advantages = counted(&case.advantages);
    let clipped = -&advantages * ratio.clamp(0.8, 1.2);
    let losses = counted(&(-&advantages * &ratio).maximum(&clipped));
    let mean =
        |numbers: &Tensor| counted(numbers).sum(None) / mask.sum(ratio.kind()).clamp_min(1.0);
    let (plain, clipped) = (&advantages * &ratio, &advantages * ratio.clamp(0.8, 1.2));
    // Mended: clipped.lt_tensor(&plain)
    let counted = plain.lt_tensor(&clipped);
    PolicyLossOutput {
        loss: mean(&losses),
        clip_fraction: Some(mean(&counted.to_kind(ratio.kind()))),
        approx_kl: None,
        kl: None,
        grad_log_probs: None,
    }
}
