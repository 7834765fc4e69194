//! TRL #6380: each rank averages its metric over its own tokens, and the means are averaged over
//! the ranks: a rank with few tokens weighs as much as one with many.

use shakedown::contracts::metric_reduction::{
    MetricReduction, MetricReductionCase, Options, Shard,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "trl #6380 (c1f6f24e1)",
    place: Place::CPU_F32,
    found_by: &["oracle", "partition", "empty-shard"],
    fault: "mean-of-rank-means",
    check: |bug, budget| bug.check_on::<MetricReduction>(answer, Options::default(), budget),
};

fn answer(case: &MetricReductionCase<Tensors>) -> Tensor {
    let ranks: Vec<_> = case.shards.iter().map(sum_and_count).collect();
    let world_size = ranks.len() as f64;
    // Mended: the sum of the sums, over the sum of the counts
    let means = ranks.iter().map(|(sum, count)| sum / count.clamp_min(1.0));
    means.sum::<Tensor>() / world_size
}

/// The sum of the values of a rank, and how many tokens it has.
fn sum_and_count(shard: &Shard<Tensors>) -> (Tensor, Tensor) {
    let count = shard.mask.sum(shard.values.kind());
    (under(&shard.mask, &shard.values).sum(None), count)
}
