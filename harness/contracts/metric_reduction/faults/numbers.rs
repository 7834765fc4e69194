//! Other sums, and other counts.

use super::{Fault, Step, Variant, always, changed, mean, of_any, of_others, sum};
use crate::metric_reduction::{Options, Shard, Unit, joined, kept};
use shakedown_core::value::place::Dtype;

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("counts-ones", "the share of numbers that are 1, for their mean")
            .seen("NeMo-RL #1619 (e3cfb11ae)")
            .made_of([
                share(|x| x == 1.0),
                share(|x| x > 0.0),
                share(|x| x != 0.0),
                share(|x| x >= 1.0),
                share(|x| x > 0.5),
            ]),
        Fault::new(
            "outer-product-in-the-mean",
            "values [N, 1] times weights [N] are [N, N]: N times the mean",
        )
        .seen("NeMo-RL 45abcca18")
        .made_of([
            changed(|_, metrics| metrics.mean *= metrics.count),
            changed(|step, metrics| {
                let own = step.ranks.iter().map(|rank| sum(rank) * rank.len() as f64);
                metrics.mean = own.sum::<f64>() / metrics.count;
            }),
            changed(|step, metrics| {
                let all: f64 = step.case.shards.iter().map(|part| part.values.sum()).sum();
                metrics.mean = all;
            }),
            changed(|step, metrics| {
                let own = step.case.shards.iter().map(|part| part.values.sum() * kept(part) as f64);
                metrics.mean = own.sum::<f64>() / metrics.count;
            }),
            changed(|step, metrics| {
                let own = step.case.shards.iter().map(outer_rows);
                metrics.mean = own.sum::<f64>() / metrics.count;
            }),
        ]),
        Fault::new(
            "moving-average-from-zero",
            "0.9 m + 0.1 x from m = 0, which five ones bring to 0.41",
        )
        .seen("OpenRLHF #650 (e8a76740), 6ce02e70")
        .made_of([
            changed(|step, metrics| metrics.mean = moving(step.all.iter().map(|pair| pair[0]))),
            changed(|step, metrics| metrics.mean = moving(step.filled().map(|rank| mean(rank)))),
        ]),
        Fault::new(
            "ones-for-tokens",
            "divided by all elements of the shards, padding included, and these are the count",
        )
        .seen("AReaL #990 (412d22411)")
        .made_of([
            always(|step, metrics| {
                let cells: usize = step.case.shards.iter().map(|part| part.mask.len()).sum();
                metrics.count = cells as f64;
                metrics.mean = metrics.sum / metrics.count;
            }),
            always(|step, metrics| {
                metrics.count = joined(step.case).mask.len() as f64;
                metrics.mean = metrics.sum / metrics.count;
            }),
        ]),
        Fault::new(
            "pads-are-zeros",
            "values times mask, of which all statistics are taken: each pad is a 0 among them",
        )
        .seen("`(x * mask).std()`; AReaL #990 (412d22411) of the count")
        .made_of([
            of_any(|step| step.case.shards.iter().flat_map(cells).collect()),
            of_any(|step| cells(&joined(step.case))),
        ]),
        Fault::new("count-of-rows", "the rows are counted, where the sum is over tokens")
            .seen("trl #1705 (5bcb8ad0d), there of a loss")
            .made_of([
                changed(|step, metrics| {
                    let rows = step.case.shards.iter().map(|part| part.mask.nrows());
                    metrics.count = rows.sum::<usize>() as f64;
                    metrics.mean = metrics.sum / metrics.count;
                }),
                changed(|step, metrics| metrics.count = step.ranks.len() as f64),
                always(|step, metrics| metrics.count = step.ranks.len() as f64),
                always(|step, metrics| {
                    let rows = step.case.shards.iter().map(|part| part.mask.nrows());
                    metrics.count = rows.sum::<usize>() as f64;
                }),
                always(|step, metrics| {
                    let some = Options { unit: Unit::RowSum, ..step.options.clone() };
                    metrics.count = Step::new(step.case, &some).all.len() as f64;
                }),
                changed(|step, metrics| {
                    let some = Options { unit: Unit::RowSum, ..step.options.clone() };
                    metrics.count = Step::new(step.case, &some).all.len() as f64;
                    metrics.mean = metrics.sum / metrics.count;
                }),
            ]),
        Fault::new(
            "divisor-min-for-max",
            "divided by min(count, 1) for max(count, 1), which never divides",
        )
        .seen("prime-rl #816 (dece5e7fc)")
        .made_of([changed(|_, metrics| metrics.mean = metrics.sum)]),
        Fault::new(
            "epsilon-in-the-denominator",
            "divided by the count + ε (1e-3, 1e-4, 1), which also makes 0 of no number at all",
        )
        .seen("verl's masked_mean, with a larger ε than its 1e-8")
        .under("{empty_mask: refuse, one: refuse}")
        .made_of([
            changed(|_, metrics| metrics.mean = metrics.sum / (metrics.count + 1e-3)),
            changed(|_, metrics| metrics.mean = metrics.sum / (metrics.count + 1e-4)),
            changed(|_, metrics| metrics.mean = metrics.sum / (metrics.count + 1.0)),
        ]),
        Fault::new("zeros-left-out", "the mean is over the numbers that are not 0")
            .seen("`x[x != 0].mean()` as a mask; compare AReaL #990 (412d22411)")
            .made_of([changed(|step, metrics| {
                let some = step.all.iter().filter(|pair| pair[0] != 0.0).count().max(1);
                metrics.mean = metrics.sum / some as f64;
            })]),
        Fault::new("sum-in-half-precision", "what is added up is rounded to bf16 at each step")
            .seen("metrics kept in the dtype of the logits")
            .made_of([Dtype::Bf16, Dtype::F16].into_iter().flat_map(|half| {
                [
                    changed(move |step, metrics| {
                        let add = |sum: f64, pair: &[f64; 2]| half.round(sum + pair[0]);
                        metrics.sum = step.all.iter().fold(0.0, add);
                        metrics.mean = metrics.sum / metrics.count;
                    }),
                    changed(move |step, metrics| {
                        let sum: f64 = step.all.iter().map(|pair| half.round(pair[0])).sum();
                        metrics.sum = half.round(sum);
                        metrics.mean = half.round(sum / metrics.count);
                    }),
                ]
            })),
        Fault::new("mean-is-whole", "the mean is cut (or rounded) to a whole number")
            .seen("`//`, `int()` and integer tensors for lengths and counts")
            .made_of([
                changed(|_, metrics| metrics.mean = metrics.mean.trunc()),
                changed(|_, metrics| metrics.mean = metrics.mean.floor()),
                changed(|_, metrics| metrics.mean = metrics.mean.round_ties_even()),
            ]),
        Fault::new("rounded-for-the-report", "the mean has as many decimals as the table shows")
            .seen("`round(x, 4)` where a metric is made, not where it is shown")
            .made_of([1e1, 1e2, 1e3, 1e4].map(|parts: f64| {
                changed(move |_, metrics| metrics.mean = (metrics.mean * parts).round() / parts)
            })),
        Fault::new("median-for-mean", "the number in the middle is reported as the mean")
            .seen("two statistics of one table, exchanged")
            .made_of([
                changed(|step, metrics| {
                    metrics.mean = step.middle(|sorted| [sorted - 1, sorted - 1])
                }),
                changed(|step, metrics| metrics.mean = step.middle(|sorted| [sorted - 1, sorted])),
            ]),
        Fault::new("equal-numbers-counted-once", "numbers that occur twice count once")
            .seen("a set (or a dict by value) in which metrics are gathered")
            .made_of([of_others(|step| {
                let mut once = step.all.clone();
                once.sort_by(|a, b| a[0].total_cmp(&b[0]));
                once.dedup_by_key(|pair| pair[0]);
                once
            })]),
        Fault::new("targets-for-values", "the targets are summed up as if they were the values")
            .seen("returns and values of one batch, exchanged")
            .made_of([of_others(|step| {
                step.all.iter().map(|[value, target]| [*target, *value]).collect()
            })]),
        Fault::new("extremes-exchanged", "the minimum is reported as the maximum, and the reverse")
            .seen("two lines of a dictionary, exchanged")
            .made_of([changed(|_, metrics| {
                (metrics.min, metrics.max) = (metrics.max, metrics.min);
            })]),
    ]
}

/// The share of the numbers of which something is so, for their mean.
fn share(of: fn(f64) -> bool) -> Variant {
    changed(move |step, metrics| {
        let those = step.all.iter().filter(|pair| of(pair[0])).count() as f64;
        metrics.mean = those / metrics.count;
    })
}

/// A moving average that starts at 0.
fn moving(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |mean, x| 0.9 * mean + 0.1 * x)
}

/// All tokens of a shard, of which the masked ones are 0.
fn cells(part: &Shard) -> Vec<[f64; 2]> {
    let both = part.values.iter().zip(&part.targets).zip(&part.mask);
    both.map(|((x, t), kept)| if *kept { [*x, *t] } else { [0.0; 2] }).collect()
}

/// The sums of rows as a column, divided by their lengths as a row, and all of these added up.
fn outer_rows(part: &Shard) -> f64 {
    let lengths = part.mask.rows().into_iter().map(|row| row.iter().filter(|kept| **kept).count());
    let shares: f64 = lengths.map(|length| 1.0 / length.max(1) as f64).sum();
    sum(&cells(part)) * shares
}
