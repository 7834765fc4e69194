//! verl #1440: rows are sorted by length for the critic, and masked before they are put back in
//! their order.

use shakedown::contracts::gae::{Gae, GaeCase, GaeOutput, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::{Kind, Tensor};

use super::Bug;
use crate::gae::gae;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "verl #1440 (f147ede20)",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "row-permutation",
        "row-split",
        "row-end",
        "recursion",
        "returns-minus-values",
        "compact-equals-expanded",
    ],
    fault: "mask-applied-before-unsorting",
    check: |bug, budget| bug.check_on::<Gae>(answer, Options::default(), budget),
};

fn answer(case: &GaeCase<Tensors>) -> GaeOutput<Tensors> {
    let lengths = case.mask.sum_dim_intlist(1, false, Kind::Int64);
    let order = lengths.argsort_stable(true, 0, true);
    let back = order.argsort(0, false);
    let gae = gae(&case.rewards, &case.values, &case.mask, &Options::default());
    let masked = |numbers: &Tensor| {
        let sorted = numbers.index_select(0, &order);
        // Mended: under(&case.mask, &sorted.index_select(0, &back))
        under(&case.mask, &sorted).index_select(0, &back)
    };
    GaeOutput { advantages: masked(&gae.advantages), returns: masked(&gae.returns) }
}
