//! NeMo-RL #3794: the batch is filtered, and the rewards are the first of the one before.

use shakedown::contracts::group_filter::{
    GroupFilter, GroupFilterCase, GroupFilterOutput, Options,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::group_filter::group_filter;

pub(super) const BUG: Bug = Bug {
    source: "NeMo-RL #3794",
    place: Place::CPU_F32,
    found_by: &["oracle", "aligned"],
    fault: "rewards-of-the-unfiltered-batch",
    check: |bug, budget| bug.check_on::<GroupFilter>(answer, Options::default(), budget),
};

fn answer(case: &GroupFilterCase<Tensors>) -> GroupFilterOutput<Tensors> {
    let filtered = group_filter(case, &Options::default());
    let kept = filtered.keep.sum(tch::Kind::Int64).int64_value(&[]);
    // Mended: case.rewards.masked_select(&filtered.keep)
    let rewards = case.rewards.narrow(0, 0, kept);
    GroupFilterOutput { kept_rewards: Some(rewards), ..filtered }
}
