//! trl #5353: the reward that is logged is the sum of the functions without their weights.

use shakedown::contracts::reward_combination::{
    Options, RewardCombination, RewardCombinationCase, RewardCombinationOutput,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::reward_combination::{Combined, reward_combination};

pub(super) const BUG: Bug = Bug {
    source: "trl #5353 (eff92425d), #5352",
    place: Place::CPU_F32,
    found_by: &["oracle", "means-agree"],
    fault: "logged-reward-unweighted",
    check: |bug, budget| bug.check_on::<RewardCombination>(answer, options(), budget),
};

fn options() -> Options {
    Options { weights: Some(vec![1.0, 0.5]), ..Options::default() }
}

fn answer(case: &RewardCombinationCase<Tensors>) -> RewardCombinationOutput<Tensors> {
    let Combined { combined, function_means, .. } =
        reward_combination(&case.rewards, &case.groups, &options());
    // Mended: (&case.rewards * weights).nansum(…).mean(…)
    let reward_mean = case.rewards.sum_dim_intlist(1, false, None).mean(None);
    RewardCombinationOutput {
        combined,
        reward_mean: Some(reward_mean),
        function_means: Some(function_means),
    }
}
