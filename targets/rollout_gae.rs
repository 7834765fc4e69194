//! `rollout-gae` on tensors: generalised advantage estimation over environments that start anew.

use shakedown::author::Component;
use shakedown::contracts::rollout_gae::{DoneConvention, Options, RolloutGae, RolloutGaeOutput};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;
use crate::gae::Gae;
use crate::masked::under;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<RolloutGae> {
    tch::<RolloutGae>(move |case| {
        let rollout = Rollout {
            rewards: &case.rewards,
            values: &case.values,
            dones: &case.dones,
            last_values: &case.last_values,
            last_dones: &case.last_dones,
        };
        let Gae { advantages, returns } = rollout_gae(&rollout, &options);
        RolloutGaeOutput { advantages, returns }
    })
}

/// What a rollout collected, and what stands after its last step.
#[derive(Debug)]
pub struct Rollout<'a> {
    /// `[T, E]`.
    pub rewards: &'a Tensor,
    /// `[T, E]`: the value of the state in which the step was taken.
    pub values: &'a Tensor,
    /// `[T, E]`: ends or beginnings of episodes, as `done_convention` says.
    pub dones: &'a Tensor,
    /// `[E]`: the value of the state that the last step led to.
    pub last_values: &'a Tensor,
    /// `[E]`: with `before`, whether that state is the first of an episode.
    pub last_dones: &'a Tensor,
}

/// Advantages and returns of each step. Nothing crosses the end of an episode.
///
/// # Shapes
/// `T` steps of `E` environments: as in [`Rollout`]; both results `[T, E]`.
///
/// # Units
/// Those of the rewards; `gamma` and `lam` a step. Half formats are answered in f32.
///
/// # Errors
/// None.
///
/// # Source
/// Schulman et al. 2016. `before`: the buffers of Stable-Baselines3 and CleanRL.
pub fn rollout_gae(rollout: &Rollout<'_>, options: &Options) -> Gae {
    let kind = arithmetic(rollout.values.kind());
    let rewards = rollout.rewards.to_kind(kind).unbind(0);
    let values = rollout.values.to_kind(kind);
    let ends = ends(rollout, options.done_convention).unbind(0);

    let mut next_value = rollout.last_values.to_kind(kind);
    let mut advantage = next_value.zeros_like();
    let mut advantages = Vec::new();
    for (step, value) in values.unbind(0).into_iter().enumerate().rev() {
        let goes_on = ends[step].logical_not();
        let later = (next_value + &advantage * options.lam) * options.gamma;
        advantage = &rewards[step] + under(&goes_on, &later) - &value;
        advantages.push(advantage.shallow_clone());
        next_value = value;
    }
    advantages.reverse();
    let advantages = Tensor::stack(&advantages, 0);
    let returns = &advantages + values;
    Gae { advantages, returns }
}

/// `[T, E]`: whether a step ended its episode.
fn ends(rollout: &Rollout<'_>, convention: DoneConvention) -> Tensor {
    let dones = rollout.dones;
    match convention {
        DoneConvention::After => dones.shallow_clone(),
        DoneConvention::Before => {
            let later = dones.narrow(0, 1, dones.size()[0] - 1);
            Tensor::cat(&[later, rollout.last_dones.unsqueeze(0)], 0)
        }
    }
}
