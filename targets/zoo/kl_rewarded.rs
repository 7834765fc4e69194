//! verl #179: the divergence from the reference is subtracted from the loss.

use shakedown::contracts::policy_loss::{Options, PolicyLoss, PolicyLossCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "verl #179 (a65c9157b)",
    place: Place::CPU_F32,
    found_by: &["oracle", "gradient", "kl-raises-the-loss", "pulls-towards-the-reference"],
    fault: "kl-term-subtracted",
    check: |bug, budget| {
        let options = Options { beta: 0.5, ..Options::default() };
        bug.check_on::<PolicyLoss>(answer, options, budget)
    },
};

/// The surrogate and the KL.
fn answer(case: &PolicyLossCase<Tensors>) -> Tensor {
    let mask = &case.mask;
    let counted = |numbers: &Tensor| under(mask, numbers);
    let ratio = counted(&(&case.log_probs - &case.old_log_probs)).exp();
    let advantages = counted(&case.advantages);
    let clipped = -&advantages * ratio.clamp(0.8, 1.2);
    let losses = counted(&(-&advantages * &ratio).maximum(&clipped));
    let reference = case.ref_log_probs.as_ref().expect("`beta` > 0");
    let gap = counted(&(&case.log_probs - reference));
    let kl = (-&gap).expm1() + gap;
    // Mended: losses + kl * 0.5
    let losses = losses - kl * 0.5;
    losses.sum(None) / mask.sum(losses.kind()).clamp_min(1.0)
}
