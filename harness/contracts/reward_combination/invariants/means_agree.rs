//! The mean reward is made of the means of the functions.
//!
//! ### Claim
//! Where all rows are scored, `reward_mean` is the weighted sum of `function_means`.
//!
//! ### Why it matters
//! The total is what runs are compared by. Logged without the weights it rises with a function
//! that hardly counts, and the run that looks best is not the one that was trained for.
//!
//! ### Does not hold for
//! Scores that are missing, and components that return one of the two alone.
//!
//! ### Bugs it has caught
//! trl #5352, #5353: the mean of the sums without weights.
//!
//! ### Example
//! Under `weights=[1.0, 0.5]`:
//! ```diff
//! -        "reward_mean": rewards.nansum(dim=1)[scored].mean(),
//! +        "reward_mean": weighted_sum(rewards, weights)[scored].mean(),
//! ```

use super::weights;
use crate::reward_combination::RewardCombination;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::Aggregation,
    &["logged-reward-unweighted", "reward-mean-of-the-normalised"],
    check,
);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let output = probe.output()?.output;
    let (Some(total), Some(means)) = (&output.reward_mean, &output.function_means) else {
        return Err(Stop::Vacuous);
    };
    if probe.case.rewards.iter().any(|reward| reward.is_nan()) || total[()].is_nan() {
        return Err(Stop::Vacuous);
    }
    let weights = weights(probe.options, means.len());
    let of_means = probe.bounds("function_means");
    let mut allowed = 2.0 * probe.bounds("reward_mean").sum();
    let mut expected = 0.0;
    for (function, weight) in weights.iter().enumerate() {
        expected += weight * means[function];
        allowed += weight.abs() * of_means[[function]];
    }
    if expected.is_nan() {
        return Err(Stop::Vacuous);
    }
    near("reward_mean", total[()], expected, allowed)
}
