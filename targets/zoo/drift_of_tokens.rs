//! slime #1917: whether a row has drifted is decided token by token, so that half of it stays.

use shakedown::contracts::importance_weights::{
    ImportanceWeights, ImportanceWeightsCase, ImportanceWeightsOutput, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "slime #1917",
    place: Place::CPU_F32,
    found_by: &["oracle", "rows-share-a-fate"],
    fault: "drift-per-token",
    check: |bug, budget| {
        let options = Options { drift: Some(LIMIT), clamp_high: None, ..Options::default() };
        bug.check_on::<ImportanceWeights>(answer, options, budget)
    },
};

/// The mean of sampler less policy from which on a row of negative advantage goes.
const LIMIT: f64 = 0.25;

fn answer(case: &ImportanceWeightsCase<Tensors>) -> ImportanceWeightsOutput<Tensors> {
    let mask = &case.mask;
    let drift = under(mask, &(&case.sampler_log_probs - case.log_probs.detach()));
    let advantages = case.advantages.as_ref().expect("`drift` is declared").unsqueeze(1);
    // Mended: drift.sum_dim_intlist(1, true, None) / mask.sum_dim_intlist(1, true, drift.kind())
    let far = drift.gt(LIMIT);
    let keep = mask.logical_and(&far.logical_and(&advantages.lt(0.0)).logical_not());
    ImportanceWeightsOutput {
        weights: under(&keep, &(-drift).exp()),
        keep: Some(keep),
        clip_fraction: None,
        mismatch_kl: None,
        grad_log_probs: None,
    }
}
