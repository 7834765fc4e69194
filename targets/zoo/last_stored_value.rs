//! Stable-Baselines3 #183: a rollout that is cut short is continued with the value of its last
//! step's own state, and not of the state that it led to.

use shakedown::contracts::rollout_gae::{Options, RolloutGae, RolloutGaeCase, RolloutGaeOutput};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "SB3 #183, #185 (fc952715)",
    place: Place::CPU_F32,
    found_by: &["oracle", "recursion", "last-values"],
    fault: "bootstrap-with-the-last-stored-value",
    check: |bug, budget| bug.check_on::<RolloutGae>(answer, Options::default(), budget),
};

fn answer(case: &RolloutGaeCase<Tensors>) -> RolloutGaeOutput<Tensors> {
    let (rewards, values) = (case.rewards.unbind(0), case.values.unbind(0));
    let dones = case.dones.unbind(0);
    let mut advantage = case.last_values.zeros_like();
    // Mended: case.last_values.shallow_clone()
    let mut next_value = values[values.len() - 1].shallow_clone();
    let mut advantages = Vec::new();
    for step in (0..values.len()).rev() {
        let later = (next_value + &advantage * 0.95) * 0.99;
        advantage = &rewards[step] + under(&dones[step].logical_not(), &later) - &values[step];
        advantages.push(advantage.shallow_clone());
        next_value = values[step].shallow_clone();
    }
    advantages.reverse();
    let advantages = Tensor::stack(&advantages, 0);
    let returns = &advantages + &case.values;
    RolloutGaeOutput { advantages, returns }
}
