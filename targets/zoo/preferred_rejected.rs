//! LLaMA-Factory: the log-sigmoid is minimised, and not its negative, so what was rejected is
//! preferred.

use shakedown::contracts::preference_loss::{Options, PreferenceLoss, PreferenceLossCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "LLaMA-Factory 52d402e2a",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "gradient",
        "equal-policies",
        "non-negative",
        "falls-with-the-margin",
        "opposite-pairs",
        "gradients-opposite",
    ],
    fault: "sign-flipped",
    check: |bug, budget| bug.check_on::<PreferenceLoss>(answer, Options::default(), budget),
};

fn answer(case: &PreferenceLossCase<Tensors>) -> Tensor {
    let chosen = &case.policy_chosen - &case.ref_chosen;
    let rejected = &case.policy_rejected - &case.ref_rejected;
    // Mended: -((chosen - rejected) * 0.1).log_sigmoid()
    ((chosen - rejected) * 0.1).log_sigmoid()
}
