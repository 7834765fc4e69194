//! prime-rl #390: the deviation divides the mean, and not the difference.

use shakedown::contracts::group_advantage::{
    GroupAdvantage, GroupAdvantageCase, Layout, Options, Singleton,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "prime-rl #390 (748158fa6)",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "zero-sum",
        "constant-group",
        "declared-scale",
        "shift-invariant",
        "scales-with-the-rewards",
        "bounded",
    ],
    fault: "mean-over-std-precedence",
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
    let size = case.groups.eq_tensor(&case.groups.get(0)).sum(None).int64_value(&[]);
    let groups = case.rewards.split(size, 0).into_iter().map(|rewards| {
        // Mended: (&rewards - rewards.mean(None)) / (rewards.std(true) + 1e-4)
        &rewards - rewards.mean(None) / (rewards.std(true) + 1e-4)
    });
    Tensor::cat(&groups.collect::<Vec<_>>(), 0)
}
