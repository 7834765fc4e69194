//! AReaL #225: the loop over groups steps by the group's size, and its slice multiplies by it
//! again.

use shakedown::contracts::group_advantage::{
    GroupAdvantage, GroupAdvantageCase, Layout, Options, Singleton,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::{Kind, Tensor};

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "AReaL #225 (0b0d4eda9)",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "row-permutation",
        "row-split",
        "zero-sum",
        "constant-group",
        "declared-scale",
        "shift-invariant",
        "scales-with-the-rewards",
        "bounded",
    ],
    fault: "group-stride-applied-twice",
    check: |bug, budget| {
        let options = Options {
            layout: Layout::Contiguous,
            singleton: Singleton::Avoid,
            ..Options::default()
        };
        bug.check_on::<GroupAdvantage>(advantages, options, budget)
    },
};

fn advantages(case: &GroupAdvantageCase<Tensors>) -> Tensor {
    let count = case.rewards.size()[0];
    let size = case.groups.eq_tensor(&case.groups.get(0)).sum(Kind::Int64).int64_value(&[]);
    let advantages = case.rewards.copy();
    for i in (0..count).step_by(size as usize) {
        // Mended: (0..count / size)
        let mut rows = advantages.slice(0, i * size, (i + 1) * size, 1);
        if rows.numel() > 0 {
            let normalised = (&rows - rows.mean(None)) / (rows.std(true) + 1e-4);
            rows.copy_(&normalised);
        }
    }
    advantages
}
