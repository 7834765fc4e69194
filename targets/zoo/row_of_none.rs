//! trl #5773, #5775, #5902: a completion that no reward function scored sums to 0.

use shakedown::contracts::reward_combination::{
    Options, RewardCombination, RewardCombinationCase, Unscored,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "trl #5773, #5775, #5902 (1c7c7f988)",
    place: Place::CPU_F32,
    found_by: &["oracle", "nothing-scored"],
    fault: "row-of-none-is-zero",
    check: |bug, budget| {
        let options = Options { unscored: Unscored::Skip, ..Options::default() };
        bug.check_on::<RewardCombination>(answer, options, budget)
    },
};

fn answer(case: &RewardCombinationCase<Tensors>) -> Tensor {
    // Mended: where no function scored a row it is NaN again.
    case.rewards.nansum(1, false, None)
}
