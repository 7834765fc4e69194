//! AReaL #990: what a metric is divided by is made of ones in the shape of the local chunk, so that
//! padding is counted.

use shakedown::contracts::metric_reduction::{MetricReduction, MetricReductionCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "AReaL #990 (412d22411)",
    place: Place::CPU_F32,
    found_by: &["oracle", "empty-shard", "constant", "padding"],
    fault: "ones-for-tokens",
    check: |bug, budget| bug.check_on::<MetricReduction>(answer, Options::default(), budget),
};

fn answer(case: &MetricReductionCase<Tensors>) -> Tensor {
    let sums = case.shards.iter().map(|shard| under(&shard.mask, &shard.values).sum(None));
    // Mended: shard.mask.sum(kind)
    let counts = case.shards.iter().map(|shard| shard.values.ones_like().sum(None));
    sums.sum::<Tensor>() / counts.sum::<Tensor>()
}
