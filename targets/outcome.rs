//! `outcome-advantage` on tensors: an outcome a completion, normalised in its group, at each token.

use shakedown::author::Component;
use shakedown::contracts::group_advantage;
use shakedown::contracts::outcome_advantage::{EmptyRows, Options, OutcomeAdvantage};
use shakedown_tch::tch;
use tch::Tensor;

use crate::advantage::group_advantage;
use crate::arithmetic;
use crate::masked::under;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<OutcomeAdvantage> {
    tch::<OutcomeAdvantage>(move |case| {
        outcome_advantage(&case.token_rewards, &case.mask, &case.groups, &options)
    })
}

/// The advantage of each token: that of its completion, whose outcome is the sum of its rewards.
///
/// # Shapes
/// `N` completions of `T` tokens: token rewards and mask `[N, T]`, groups `[N]`, the result
/// `[N, T]`, 0 where masked.
///
/// # Units
/// As [`group_advantage()`].
///
/// # Errors
/// Panics where the shapes differ.
///
/// # Source
/// verl `compute_grpo_outcome_advantage`, but for its sum, which does not see the mask;
/// `empty_rows: exclude` is NeMo-RL's.
pub fn outcome_advantage(
    token_rewards: &Tensor,
    mask: &Tensor,
    groups: &Tensor,
    options: &Options,
) -> Tensor {
    let rewards = under(mask, &token_rewards.to_kind(arithmetic(token_rewards.kind())));
    let outcomes = rewards.sum_dim_intlist(1, false, None);
    let outcomes = match options.empty_rows {
        EmptyRows::Count => outcomes,
        // Not scored: so it has no part in the statistics.
        EmptyRows::Exclude => outcomes.where_scalarother(&mask.any_dim(1, false), f64::NAN),
    };
    let advantages = group_advantage(&outcomes, groups, &by_group(options));
    under(mask, &advantages.unsqueeze(1).expand_as(mask))
}

fn by_group(options: &Options) -> group_advantage::Options {
    group_advantage::Options {
        baseline: options.baseline,
        scale: options.scale,
        ddof: options.ddof,
        epsilon: options.epsilon,
        epsilon_mode: options.epsilon_mode,
        singleton: options.singleton,
        layout: options.layout,
        unscored: options.unscored,
        ..Default::default()
    }
}
