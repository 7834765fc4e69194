//! LLaMA-Factory #6050: the implied rewards of the two sides are returned in the order of the
//! other.

use shakedown::contracts::preference_loss::{
    Options, PreferenceLoss, PreferenceLossCase, PreferenceLossOutput,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "LLaMA-Factory #6050 (089e4d9e9)",
    place: Place::CPU_F32,
    found_by: &["oracle", "implicit-rewards"],
    fault: "chosen-and-rejected-outputs-swapped",
    check: |bug, budget| bug.check_on::<PreferenceLoss>(answer, Options::default(), budget),
};

fn answer(case: &PreferenceLossCase<Tensors>) -> PreferenceLossOutput<Tensors> {
    let chosen = (&case.policy_chosen - &case.ref_chosen) * 0.1;
    let rejected = (&case.policy_rejected - &case.ref_rejected) * 0.1;
    PreferenceLossOutput {
        losses: Some(-(&chosen - &rejected).log_sigmoid()),
        loss: None,
        // Mended: the two lines exchanged
        chosen_rewards: Some(rejected.detach()),
        rejected_rewards: Some(chosen.detach()),
        grad_policy_chosen: None,
        grad_policy_rejected: None,
    }
}
