//! NeMo-RL #2506: k3 is differentiated as a loss: its value estimates the KL, its gradient that
//! of the reversed one.

use shakedown::contracts::kl_estimate::{Gradient, KlEstimate, KlEstimateCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "NeMo-RL #2506 (33bce20d7)",
    place: Place::CPU_F32,
    found_by: &["gradient", "expected-gradient"],
    fault: "k3-gradient-of-the-reversed-kl",
    check: |bug, budget| {
        let options = Options { gradient: Gradient::K2, ..Options::default() };
        bug.check_on::<KlEstimate>(answer, options, budget)
    },
};

fn answer(case: &KlEstimateCase<Tensors>) -> Tensor {
    let log_ratio = &case.log_probs - &case.ref_log_probs;
    let k3 = (-&log_ratio).expm1() + &log_ratio;
    // Mended: let slope = log_ratio.square() / 2.0; k3.detach() + &slope - slope.detach()
    k3
}
