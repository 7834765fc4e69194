//! The reference implementation of `rollout-gae`, as a trainer would write it: one pass from the
//! end, all environments at a time.

use ndarray::Array2;

use super::{DoneConvention, Options, RolloutGaeCase, RolloutGaeOutput};
use shakedown_core::value::place::Dtype;

/// Advantages and returns, computed in the arithmetic of the dtype.
pub(super) fn rollout_gae(
    case: &RolloutGaeCase,
    options: &Options,
    dtype: Dtype,
) -> RolloutGaeOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let (gamma, lam) = (f(options.gamma), f(options.lam));
    let (steps, envs) = case.rewards.dim();
    let mut advantages = Array2::zeros((steps, envs));
    let mut returns = advantages.clone();
    for env in 0..envs {
        let (mut ahead, mut next) = (0.0, case.last_values[env]);
        let mut starts = case.last_dones[env];
        for step in (0..steps).rev() {
            let at = [step, env];
            let ended = match options.done_convention {
                DoneConvention::After => case.dones[at],
                DoneConvention::Before => starts,
            };
            let goes_on = if ended { 0.0 } else { 1.0 };
            let error = f(f(case.rewards[at] + f(gamma * next * goes_on)) - case.values[at]);
            ahead = f(error + f(f(gamma * lam) * ahead * goes_on));
            (next, starts) = (case.values[at], case.dones[at]);
            advantages[at] = ahead;
            returns[at] = f(ahead + next);
        }
    }
    (advantages, returns).into()
}
