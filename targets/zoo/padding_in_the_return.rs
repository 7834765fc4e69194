//! trl #7024: the mask is made of the token ids, in which padding is a token like any other, and
//! not of the labels, in which it is -100.

use shakedown::contracts::returns::{Options, Returns, ReturnsCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::{Kind, Tensor};

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "trl #7024",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "padding",
        "masked-poison",
        "recursion",
        "linear",
        "compact-equals-expanded",
    ],
    fault: "pad-rewards-in-the-return",
    check: |bug, budget| bug.check_on::<Returns>(returns, Options::default(), budget),
};

/// What a label is where nothing is learnt.
const IGNORED: i64 = -100;

fn returns(case: &ReturnsCase<Tensors>) -> Tensor {
    let ids = case.mask.to_kind(Kind::Int64); // a pad is token 0
    // Mended: labels.ne(IGNORED), where the labels are ids.masked_fill(&ids.eq(0), IGNORED)
    let mask = ids.ne(IGNORED);
    let rewards = &case.rewards * mask.to_kind(case.rewards.kind());
    rewards.flip([1]).cumsum(1, None).flip([1])
}
