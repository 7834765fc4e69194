//! Stable-Baselines3 #105: flags are stored after the step, and read as if row t + 1 said whether
//! step t ended its episode.

use shakedown::contracts::rollout_gae::{Options, RolloutGae, RolloutGaeCase, RolloutGaeOutput};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "SB3 #105, #110 (2cd6a4f9)",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "recursion",
        "episodes-are-closed",
        "concatenated-episodes",
        "content-critic",
    ],
    fault: "done-flag-shifted",
    check: |bug, budget| bug.check_on::<RolloutGae>(answer, Options::default(), budget),
};

fn answer(case: &RolloutGaeCase<Tensors>) -> RolloutGaeOutput<Tensors> {
    let (rewards, values) = (case.rewards.unbind(0), case.values.unbind(0));
    let dones = case.dones.unbind(0);
    let mut advantage = case.last_values.zeros_like();
    let mut next_value = case.last_values.shallow_clone();
    let mut advantages = Vec::new();
    for step in (0..values.len()).rev() {
        // Mended: &dones[step]
        let ended = dones.get(step + 1).unwrap_or(&case.last_dones);
        let later = (next_value + &advantage * 0.95) * 0.99;
        advantage = &rewards[step] + under(&ended.logical_not(), &later) - &values[step];
        advantages.push(advantage.shallow_clone());
        next_value = values[step].shallow_clone();
    }
    advantages.reverse();
    let advantages = Tensor::stack(&advantages, 0);
    let returns = &advantages + &case.values;
    RolloutGaeOutput { advantages, returns }
}
