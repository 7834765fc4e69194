//! NeMo-RL #4061: a completion that is masked as a whole, because it was cut short, has a part in
//! the mean and deviation of its group.

use shakedown::contracts::group_advantage as group;
use shakedown::contracts::outcome_advantage::{
    EmptyRows, Options, OutcomeAdvantage, OutcomeAdvantageCase,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::advantage::group_advantage;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "NeMo-RL #4061, #3467",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "empty-rows",
        "zero-sum",
        "constant-group",
        "declared-scale",
        "shift-invariant",
        "scales-with-the-rewards",
        "bounded",
        "singleton",
        "unscored",
    ],
    fault: "excluded-row-in-the-statistics",
    check: |bug, budget| {
        let options = Options { empty_rows: EmptyRows::Exclude, ..Options::default() };
        bug.check_on::<OutcomeAdvantage>(answer, options, budget)
    },
};

fn answer(case: &OutcomeAdvantageCase<Tensors>) -> Tensor {
    let outcomes = under(&case.mask, &case.token_rewards).sum_dim_intlist(1, false, None);
    // Mended: outcomes.where_scalarother(&case.mask.any_dim(1, false), f64::NAN)
    let advantages = group_advantage(&outcomes, &case.groups, &group::Options::default());
    under(&case.mask, &advantages.unsqueeze(1).expand_as(&case.mask))
}
