//! trlx: k3 of the log-ratio, where tokens that the policy sampled need that of its negative.

use shakedown::contracts::kl_estimate::{KlEstimate, KlEstimateCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "trlx",
    place: Place::CPU_F32,
    found_by: &["oracle", "gradient", "direction", "expectation"],
    fault: "k3-direction-reversed",
    check: |bug, budget| bug.check_on::<KlEstimate>(answer, Options::default(), budget),
};

fn answer(case: &KlEstimateCase<Tensors>) -> Tensor {
    let log_ratio = &case.log_probs - &case.ref_log_probs;
    // Mended: (-&log_ratio).expm1() + log_ratio
    log_ratio.expm1() - log_ratio
}
