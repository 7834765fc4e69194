//! OpenRLHF #1270, #1272: a group whose mean lies between 0 and 1 is taken for one that differs.

use shakedown::contracts::group_filter::{GroupFilter, GroupFilterCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "OpenRLHF #1270, #1272",
    place: Place::CPU_F32,
    found_by: &["oracle", "constant-group"],
    fault: "mean-inside-is-no-spread",
    check: |bug, budget| bug.check_on::<GroupFilter>(answer, Options::default(), budget),
};

fn answer(case: &GroupFilterCase<Tensors>) -> Tensor {
    let group = case.groups.unsqueeze(1).eq_tensor(&case.groups.unsqueeze(0));
    let weights = group.to_kind(case.metric.kind());
    let mean = weights.mv(&case.metric) / weights.sum_dim_intlist(1, false, None);
    // Mended: the largest of each group less the least, greater than 0.
    mean.gt(0.0).logical_and(&mean.lt(1.0))
}
