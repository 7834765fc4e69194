//! trl #2277: k1 is differentiated as a loss: its gradient is 1 whatever the reference is, and 0
//! on average.

use shakedown::contracts::kl_estimate::{Estimator, Gradient, KlEstimate, KlEstimateCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "trl #2277 (ea7a1be92)",
    place: Place::CPU_F32,
    found_by: &["gradient", "expected-gradient"],
    fault: "k1-as-a-loss",
    check: |bug, budget| {
        let options =
            Options { estimator: Estimator::K1, gradient: Gradient::K2, ..Options::default() };
        bug.check_on::<KlEstimate>(answer, options, budget)
    },
};

fn answer(case: &KlEstimateCase<Tensors>) -> Tensor {
    let log_ratio = &case.log_probs - &case.ref_log_probs;
    // Mended: let slope = log_ratio.square() / 2.0; log_ratio.detach() + &slope - slope.detach()
    log_ratio
}
