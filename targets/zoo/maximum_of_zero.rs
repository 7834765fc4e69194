//! verl: a fused kernel whose running maximum is initialised with 0: logits far below it have
//! exponentials that are all 0, and the entropy is NaN.

use shakedown::contracts::entropy_bonus::{
    EntropyBonus, EntropyBonusCase, EntropyBonusOutput, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::masked::{mean, under};

pub(super) const BUG: Bug = Bug {
    source: "verl ced0c903d",
    place: Place::CPU_F32,
    found_by: &["finite", "oracle", "shift-invariant"],
    fault: "maximum-starts-at-zero",
    check: |bug, budget| bug.check_on::<EntropyBonus>(answer, Options::default(), budget),
};

fn answer(case: &EntropyBonusCase<Tensors>) -> EntropyBonusOutput<Tensors> {
    let logits = under(&case.mask.unsqueeze(-1), &case.logits);
    // Mended: logits.amax([-1], true)
    let largest = logits.amax([-1], true).clamp_min(0.0);
    let sum = (&logits - &largest).exp().sum_dim_intlist(-1, true, None);
    let log_probs = &logits - (sum.log() + largest);
    let entropies = -(log_probs.exp() * log_probs).sum_dim_intlist(-1, false, None);
    let empty = Options::default().empty_mask;
    let entropy = mean(&entropies, &case.mask, empty);
    EntropyBonusOutput { loss: Some(&entropy * -0.01), entropy: Some(entropy), grad_logits: None }
}
