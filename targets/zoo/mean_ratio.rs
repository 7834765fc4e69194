//! OpenRLHF: the reported KL is the mean of the ratio, and not of its logarithm: -1 where the
//! policies are equal.

use shakedown::contracts::policy_loss::{Options, PolicyLoss, PolicyLossCase, PolicyLossOutput};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "OpenRLHF feeb0283, 3a9815c5",
    place: Place::CPU_F32,
    found_by: &["oracle", "metrics-on-policy"],
    fault: "approx-kl-averages-the-ratio",
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
    // Mended: mean(&-ratio.log())
    let approx_kl = mean(&-&ratio);
    PolicyLossOutput {
        loss: mean(&losses),
        clip_fraction: None,
        approx_kl: Some(approx_kl),
        kl: None,
        grad_log_probs: None,
    }
}
