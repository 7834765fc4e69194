//! verl #6362: the outcome of a row is the sum of all its rewards, also of those under the mask.

use shakedown::contracts::group_advantage as group;
use shakedown::contracts::outcome_advantage::{Options, OutcomeAdvantage, OutcomeAdvantageCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::advantage::group_advantage;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "verl #6362, #6310",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "padding",
        "masked-poison",
        "empty-rows",
        "constant-group",
        "declared-scale",
        "scales-with-the-rewards",
        "odd",
        "order-preserved",
    ],
    fault: "outcome-sums-masked-rewards",
    check: |bug, budget| bug.check_on::<OutcomeAdvantage>(answer, Options::default(), budget),
};

fn answer(case: &OutcomeAdvantageCase<Tensors>) -> Tensor {
    // Mended: under(&case.mask, &case.token_rewards).sum_dim_intlist(1, false, None)
    let outcomes = case.token_rewards.sum_dim_intlist(1, false, None);
    let advantages = group_advantage(&outcomes, &case.groups, &group::Options::default());
    under(&case.mask, &advantages.unsqueeze(1).expand_as(&case.mask))
}
