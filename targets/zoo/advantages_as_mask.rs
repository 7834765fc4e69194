//! verl #2506: the aggregation gets the advantages where it expects the mask.

use shakedown::contracts::policy_loss::{Options, PolicyLoss, PolicyLossCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "verl #2506, #2513 (fbec86d7f)",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "gradient",
        "on-policy-loss",
        "on-policy-gradient",
        "good-tokens-lower-the-loss",
        "gradient-against-the-advantage",
        "clipped-tokens",
        "at-least-unclipped",
        "linear-in-advantages",
        "rows-doubled",
    ],
    fault: "advantages-passed-as-mask",
    check: |bug, budget| bug.check_on::<PolicyLoss>(answer, Options::default(), budget),
};

fn answer(case: &PolicyLossCase<Tensors>) -> Tensor {
    let mask = &case.mask;
    let counted = |numbers: &Tensor| under(mask, numbers);
    let ratio = counted(&(&case.log_probs - &case.old_log_probs)).exp();
    let advantages = counted(&case.advantages);
    let clipped = -&advantages * ratio.clamp(0.8, 1.2);
    let losses = counted(&(-&advantages * &ratio).maximum(&clipped));
    // Mended: mask.to_kind(losses.kind())
    let weights = advantages;
    (losses * &weights).sum(None) / (weights.sum(None) + 1e-8)
}
