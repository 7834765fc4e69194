//! slime #1174: the mismatch of sampler and policy is measured on the weights, which are clamped.

use shakedown::contracts::importance_weights::{
    ImportanceWeights, ImportanceWeightsCase, ImportanceWeightsOutput, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "slime #1174 (57b9c3d2f)",
    place: Place::CPU_F32,
    found_by: &["oracle", "mismatch-kl"],
    fault: "statistics-after-the-clamp",
    check: |bug, budget| bug.check_on::<ImportanceWeights>(answer, Options::default(), budget),
};

fn answer(case: &ImportanceWeightsCase<Tensors>) -> ImportanceWeightsOutput<Tensors> {
    let mask = &case.mask;
    let gaps = under(mask, &(case.log_probs.detach() - &case.sampler_log_probs));
    let weights = gaps.exp().clamp_max(2.0);
    // Mended: under(mask, &-gaps)
    let mismatch = under(mask, &-weights.log());
    let tokens = mask.sum(gaps.kind()).clamp_min(1.0);
    ImportanceWeightsOutput {
        weights: under(mask, &weights),
        keep: None,
        clip_fraction: None,
        mismatch_kl: Some(mismatch.sum(None) / tokens),
        grad_log_probs: None,
    }
}
