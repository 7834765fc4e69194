//! What becomes of the numbers of ranks.

use ndarray::Axis;

use super::{Fault, Metrics, Step, Variant, changed, least, mean, most, of_any, of_others, sum};
use crate::metric_reduction::generate::taken;
use crate::metric_reduction::{MetricReductionCase, Options};

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "mean-of-rank-means",
            "the mean over ranks of each one's mean, for all sums over all counts",
        )
        .seen("trl #6380 (c1f6f24e1), #5620; prime-rl #2056 (3dcff28e0), #1961 (6c55a9aab)")
        .made_of([
            changed(|step, metrics| metrics.mean = step.over_ranks(mean)),
            changed(|step, metrics| {
                let means = step.ranks.iter().map(|rank| sum(rank) / rank.len().max(1) as f64);
                metrics.mean = means.sum::<f64>() / step.ranks.len() as f64;
            }),
            changed(|step, metrics| averaged(step, metrics, false)),
            changed(|step, metrics| averaged(step, metrics, true)),
        ]),
        Fault::new("extremes-averaged", "minimum and maximum are the means of those of the ranks")
            .seen("NeMo-RL #1818 (0eb5fffec), #2175 (501cd12ce)")
            .made_of([
                changed(|step, metrics| {
                    metrics.min = step.over_ranks(least);
                    metrics.max = step.over_ranks(most);
                }),
                changed(|step, metrics| {
                    let share = step.filled().count() as f64 / step.ranks.len() as f64;
                    metrics.min = share * step.over_ranks(least);
                    metrics.max = share * step.over_ranks(most);
                }),
                changed(|step, metrics| {
                    metrics.mean = step.over_ranks(mean);
                    metrics.min = step.over_ranks(least);
                    metrics.max = step.over_ranks(most);
                }),
            ]),
        Fault::new("last-rows-dropped", "every shard is cut to the rows of the shortest one")
            .seen("AReaL #1100 (0405b5c30)")
            .made_of([cut(Axis(0)), cut(Axis(1))]),
        Fault::new("one-rank-reported", "the numbers of the first (or last) rank that has any")
            .seen("verl #2259 (6d9ac2f7b): each micro-batch overwrites the one before")
            .made_of([
                of_others(|step| step.filled().next().cloned().unwrap_or_default()),
                of_others(|step| step.filled().last().cloned().unwrap_or_default()),
                of_any(|step| step.ranks.first().cloned().unwrap_or_default()),
                of_any(|step| step.ranks.last().cloned().unwrap_or_default()),
            ]),
        Fault::new("one-rank-left-out", "the last (or first) of several ranks is not gathered")
            .seen("AReaL #1100 (0405b5c30), of rows; `range(world_size - 1)`")
            .made_of([
                of_any(|step| step.ranks[..(step.ranks.len() - 1).max(1)].concat()),
                of_any(|step| step.ranks[usize::from(step.ranks.len() > 1)..].concat()),
            ]),
        Fault::new(
            "global-zipped-with-local",
            "the means of ranks are weighted with the counts of other ones",
        )
        .seen("slime #2234 (c1dd9ab24): what all ranks hold, paired with what one holds")
        .made_of([
            changed(|step, metrics| metrics.mean = step.weighted_by_another(1)),
            changed(|step, metrics| {
                metrics.mean = step.weighted_by_another(step.ranks.len() - 1);
            }),
        ]),
        Fault::new(
            "averaged-where-summed",
            "sum (and count) are divided by the ranks, as all metrics are",
        )
        .seen("verl #3994 (b49178f0f)")
        .made_of([
            changed(|step, metrics| metrics.sum /= step.ranks.len() as f64),
            changed(|step, metrics| {
                metrics.sum /= step.ranks.len() as f64;
                metrics.count /= step.ranks.len() as f64;
            }),
        ]),
        Fault::new("summed-where-averaged", "the means of the ranks are added up")
            .seen("NeMo-RL #86 (d1f0609a2), there of losses")
            .made_of([changed(|step, metrics| {
                metrics.mean = step.filled().map(|rank| mean(rank)).sum();
            })]),
        Fault::new("reduced-twice", "sum and count went over all ranks once more than they should")
            .seen("verl #4711 (0af6a385b), #4778 (f1d5e0e27): scaled twice in the report")
            .made_of([changed(|step, metrics| {
                metrics.sum *= step.ranks.len() as f64;
                metrics.count *= step.ranks.len() as f64;
            })]),
        Fault::new(
            "ranks-weighted-by-rows",
            "each rank's mean over tokens weighs as much as it has rows",
        )
        .seen("prime-rl #1961 (6c55a9aab), mended half way: counts of another unit")
        .made_of([true, false].map(|filled| {
            changed(move |step, metrics| {
                let rows = |rank: usize| step.case.shards[rank].mask.nrows() as f64;
                let counts = |rank: &usize| !(filled && step.ranks[*rank].is_empty());
                let ranks = || (0..step.ranks.len()).filter(counts);
                let own =
                    |rank: usize| sum(&step.ranks[rank]) / step.ranks[rank].len().max(1) as f64;
                let total: f64 = ranks().map(|rank| rows(rank) * own(rank)).sum();
                metrics.mean = total / ranks().map(rows).sum::<f64>();
            })
        })),
        Fault::new("empty-rank-gives-nan", "0/0 of a rank without a number, which spoils the mean")
            .seen("verl agg_loss and OpenRLHF masked_mean, which are NaN over no token")
            .made_of([changed(|step, metrics| {
                if step.ranks.iter().any(Vec::is_empty) {
                    metrics.mean = f64::NAN;
                }
            })]),
        Fault::new(
            "empty-rank-is-zero",
            "a rank without a number puts a 0 among the extremes of all ranks",
        )
        .seen("all-reduce of a default; TRL's nanmin and nanmax over ranks are made against it")
        .made_of([changed(|step, metrics| {
            if step.ranks.iter().any(Vec::is_empty) {
                (metrics.min, metrics.max) = (metrics.min.min(0.0), metrics.max.max(0.0));
            }
        })]),
        Fault::new("extremes-start-at-zero", "the running minimum and maximum are 0 at first")
            .seen("`max_value = 0` before the loop over ranks")
            .made_of([changed(|_, metrics| {
                (metrics.min, metrics.max) = (metrics.min.min(0.0), metrics.max.max(0.0));
            })]),
    ]
}

/// Mean, extremes and deviation (and sum and count) are the means over ranks of those of each one.
fn averaged(step: &Step<'_>, metrics: &mut Metrics, and_sums: bool) {
    let each: Vec<Metrics> = step.filled().map(|rank| step.of(rank)).collect();
    let over = |of: fn(&Metrics) -> f64| each.iter().map(of).sum::<f64>() / each.len() as f64;
    metrics.mean = over(|own| own.mean);
    metrics.min = over(|own| own.min);
    metrics.max = over(|own| own.max);
    metrics.std = over(|own| own.std);
    metrics.explained = over(|own| own.explained);
    if and_sums {
        metrics.sum = over(|own| own.sum);
        metrics.count = over(|own| own.count);
    }
}

/// Every shard cut to the length of the shortest.
fn cut(axis: Axis) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let lengths = case.shards.iter().map(|part| part.mask.len_of(axis));
        let first: Vec<usize> = (0..lengths.min().unwrap_or(0)).collect();
        let shards = case.shards.iter().map(|part| taken(part, axis, &first)).collect();
        Step::new(&MetricReductionCase { shards }, options).metrics().into()
    })
}
