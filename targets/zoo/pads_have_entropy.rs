//! trl #2022, #2281: pads hold a sentinel for a log-probability, and are summed with the rest: the
//! entropy is negative where there is much padding.

use shakedown::contracts::entropy_bonus::{
    EntropyBonus, EntropyBonusCase, EntropyBonusOutput, Options,
};
use shakedown::contracts::token_entropy;
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::entropy::token_entropy;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "trl #2022, #2281, #2496",
    place: Place::CPU_F32,
    found_by: &["oracle", "padding", "bounded"],
    fault: "pad-sentinel",
    check: |bug, budget| bug.check_on::<EntropyBonus>(answer, Options::default(), budget),
};

/// What stands where there is no token.
const INVALID_LOGPROB: f64 = 1.0;

fn answer(case: &EntropyBonusCase<Tensors>) -> EntropyBonusOutput<Tensors> {
    let logits = under(&case.mask.unsqueeze(-1), &case.logits);
    let entropies = token_entropy(&logits, &token_entropy::Options::default());
    let entropies = entropies.where_scalarother(&case.mask, -INVALID_LOGPROB);
    // Mended: under(&case.mask, &entropies)
    let entropy = entropies.sum(None) / case.mask.sum(entropies.kind()).clamp_min(1.0);
    EntropyBonusOutput { loss: Some(&entropy * -0.01), entropy: Some(entropy), grad_logits: None }
}
