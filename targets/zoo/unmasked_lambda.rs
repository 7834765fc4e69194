//! CleanRL #494: the end of an episode cuts the value of the next state, and not what is carried
//! with lambda.

use shakedown::contracts::rollout_gae::{Options, RolloutGae, RolloutGaeCase, RolloutGaeOutput};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "CleanRL #494 (1ed80620)",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "recursion",
        "episodes-are-closed",
        "concatenated-episodes",
        "last-values",
        "content-critic",
    ],
    fault: "lambda-term-crosses-episodes",
    check: |bug, budget| bug.check_on::<RolloutGae>(answer, Options::default(), budget),
};

fn answer(case: &RolloutGaeCase<Tensors>) -> RolloutGaeOutput<Tensors> {
    let (rewards, values) = (case.rewards.unbind(0), case.values.unbind(0));
    let dones = case.dones.unbind(0);
    let mut advantage = case.last_values.zeros_like();
    let mut next_value = case.last_values.shallow_clone();
    let mut advantages = Vec::new();
    for step in (0..values.len()).rev() {
        let carried = (&next_value + &advantage) * 0.95;
        let next = next_value * 0.05;
        // Mended: under(&dones[step].logical_not(), &(carried + next))
        let later = carried + under(&dones[step].logical_not(), &next);
        advantage = &rewards[step] + later * 0.99 - &values[step];
        advantages.push(advantage.shallow_clone());
        next_value = values[step].shallow_clone();
    }
    advantages.reverse();
    let advantages = Tensor::stack(&advantages, 0);
    let returns = &advantages + &case.values;
    RolloutGaeOutput { advantages, returns }
}
