//! OpenRLHF #620: log-probabilities are subtracted in bf16, where their difference has no digits
//! left.

use shakedown::contracts::kl_estimate::{KlEstimate, KlEstimateCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::{Kind, Tensor};

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "OpenRLHF #620 (f34ef60a)",
    place: Place::CPU_BF16,
    found_by: &["oracle", "gradient"],
    fault: "kl-in-half-precision",
    check: |bug, budget| bug.check_on::<KlEstimate>(answer, Options::default(), budget),
};

fn answer(case: &KlEstimateCase<Tensors>) -> Tensor {
    // Mended: case.log_probs.to_kind(Kind::Float) - case.ref_log_probs.to_kind(Kind::Float)
    let log_ratio = (&case.log_probs - &case.ref_log_probs).to_kind(Kind::Float);
    (-&log_ratio).expm1() + log_ratio
}
