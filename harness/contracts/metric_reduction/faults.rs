//! Known wrong behaviours of `metric-reduction`: real bugs, and conventions mistaken for others.
//!
//! A fault is the right seven numbers, of which it changes some.

use ndarray::Axis;

use super::generate::taken;
use super::{
    MetricReduction, MetricReductionCase, MetricReductionOutput, One, Options, Shard, Unit,
    Unscored, joined, kept, numbers, reference,
};
use crate::contract::fault;
use crate::numeric::conventions::EmptyMask;
use crate::value::place::Dtype;

type Fault = fault::Fault<MetricReduction>;
type Variant = fault::Variant<MetricReduction>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [over_ranks(), counts(), masks(), unscored(), deviations(), explained(), options()]
        .into_iter()
        .flatten()
        .collect()
}

/// What becomes of the numbers of ranks.
fn over_ranks() -> Vec<Fault> {
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

/// Other sums, and other counts.
fn counts() -> Vec<Fault> {
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

/// What is under the mask.
fn masks() -> Vec<Fault> {
    vec![
        Fault::new(
            "integer-mask-as-index",
            "an integer mask indexes: it picks rows 0 and 1, once for each token",
        )
        .seen("verl #60 (d46eb7d80)")
        .made_of([
            of_others(|step| step.case.shards.iter().flat_map(rows_picked).collect()),
            of_any(|step| step.case.shards.iter().flat_map(rows_picked).collect()),
            of_any(|step| rows_picked(&joined(step.case))),
            of_any(|step| step.case.shards.iter().flat_map(cells_picked).collect()),
            of_any(|step| flat_picked(step.case)),
        ]),
        Fault::new("mask-ignored", "masked tokens count as all others do")
            .seen("trl #1987 (10f70fa33): an ignore index that is not honoured")
            .gives(&[|case, options, _| {
                let mut unmasked = case.clone();
                unmasked.shards.iter_mut().for_each(|part| part.mask.fill(true));
                Step::new(&unmasked, options).metrics().into()
            }]),
        Fault::new(
            "pads-among-the-extremes",
            "values times mask: the 0 of a masked token takes part in minimum and maximum",
        )
        .seen("`(x * mask).max()`; TRL's nanmin and nanmax replace by infinities instead")
        .made_of([changed(|step, metrics| {
            if step.case.shards.iter().any(|part| part.mask.iter().any(|kept| !*kept)) {
                (metrics.min, metrics.max) = (metrics.min.min(0.0), metrics.max.max(0.0));
            }
        })]),
        Fault::new(
            "pads-in-the-deviation",
            "the mean is over what counts; its distances are squared over padding too",
        )
        .seen("trlx, whiten of padded advantages")
        .made_of([changed(|step, metrics| {
            let pads = step.case.shards.iter().flat_map(|part| &part.mask);
            let pads = pads.filter(|kept| !**kept).count() as f64;
            let degrees = metrics.count - f64::from(step.options.ddof);
            let squares = metrics.std.powi(2) * degrees + pads * metrics.mean.powi(2);
            metrics.std = (squares / degrees).sqrt();
        })]),
        Fault::new("empty-rows-counted", "a row without a token is a number too: 0")
            .seen("verl #906 and slime's convention, taken for each other")
            .under("{unit: row-mean}")
            .made_of([
                always(|step, metrics| {
                    let rows = step.case.shards.iter().map(|part| part.mask.nrows());
                    metrics.count = rows.sum::<usize>() as f64;
                    metrics.mean = metrics.sum / metrics.count;
                }),
                of_any(|step| {
                    let rows = step.case.shards.iter().map(|part| part.mask.nrows());
                    let empty = rows.sum::<usize>().saturating_sub(step.all.len());
                    [step.all.clone(), vec![[0.0; 2]; empty]].concat()
                }),
            ]),
        Fault::new("targets-not-masked", "the targets of a row are those of its padding too")
            .seen("verl #3741, of rows; one of two columns is masked")
            .under("{unit: row-mean}")
            .made_of([changed(|step, metrics| {
                let part = |part: &Shard| Shard { values: part.targets.clone(), ..part.clone() };
                let targets = step.case.shards.iter().flat_map(|own| {
                    let rows = whole_rows(&part(own), step.options.unit);
                    let some = own.mask.rows().into_iter().map(|row| row.iter().any(|kept| *kept));
                    rows.into_iter()
                        .zip(some.collect::<Vec<_>>())
                        .filter_map(|(x, some)| some.then_some(x))
                });
                let all = step.all.iter().zip(targets).map(|(pair, target)| [pair[0], target]);
                metrics.explained = step.of(&all.collect::<Vec<_>>()).explained;
            })]),
        Fault::new("mask-as-a-prefix", "as many tokens as the mask has, from the first one on")
            .seen("lengths in place of masks, which have gaps for what a tool said")
            .under("{holes: true}")
            .gives(&[|case, options, _| {
                let mut prefix = case.clone();
                for part in &mut prefix.shards {
                    for mut row in part.mask.rows_mut() {
                        let length = row.iter().filter(|kept| **kept).count();
                        row.iter_mut().enumerate().for_each(|(at, kept)| *kept = at < length);
                    }
                }
                Step::new(&prefix, options).metrics().into()
            }]),
        Fault::new(
            "row-mean-over-its-width",
            "a row's mean is its sum over the width of the shard, padding included",
        )
        .seen("verl #3741; understand-r1-zero 14046dc")
        .under("{unit: row-mean}")
        .gives(&[|case, options, _| {
            let sums = Options { unit: Unit::RowSum, ..options.clone() };
            let step = Step::new(case, options);
            let shards = case.shards.iter().flat_map(|part| {
                let width = part.mask.ncols() as f64;
                numbers(part, &sums).into_iter().map(move |pair| pair.map(|x| x / width))
            });
            step.of(&shards.collect::<Vec<_>>()).into()
        }]),
    ]
}

/// Values that are NaN.
fn unscored() -> Vec<Fault> {
    vec![
        Fault::new(
            "unscored-left-out",
            "what could not be scored vanishes where it counts as 0, and the mean rises",
        )
        .seen("prime-rl #3182 (ed05a1418); ms-swift b7f10dbc6")
        .under("{unscored: zero}")
        .as_if(&[|options| Options { unscored: Unscored::Skip, ..options }]),
        Fault::new("unscored-counted", "what could not be scored is 0 where it is left out")
            .seen("nan_to_num before TRL's nanmean")
            .under("{unscored: skip}")
            .as_if(&[|options| Options { unscored: Unscored::Zero, ..options }]),
        Fault::new(
            "unscored-in-the-count",
            "the sum leaves out what could not be scored; its tokens are counted",
        )
        .seen("nansum over mask.sum(), for TRL's nanmean")
        .under("{unscored: skip}")
        .made_of([changed(|step, metrics| {
            let counted = Options { unscored: Unscored::Zero, ..step.options.clone() };
            metrics.count = Step::new(step.case, &counted).all.len() as f64;
            metrics.mean = metrics.sum / metrics.count;
        })]),
        Fault::new("unscored-spoils-all", "one NaN makes NaN of the mean")
            .seen("mean, for TRL's nanmean over reward functions that do not apply")
            .under("{unscored: skip}")
            .made_of([
                changed(|step, metrics| {
                    if step.some_unscored() {
                        metrics.mean = f64::NAN;
                    }
                }),
                always(|step, metrics| {
                    if step.some_unscored() {
                        metrics.mean = f64::NAN;
                        metrics.sum = f64::NAN;
                    }
                }),
                always(|step, metrics| {
                    if step.some_unscored() {
                        let Metrics { count, .. } = *metrics;
                        *metrics = Metrics { count, ..Metrics::NAN };
                    }
                }),
                always(|step, metrics| {
                    if step.some_unscored() {
                        let counted = Options { unscored: Unscored::Zero, ..step.options.clone() };
                        let count = Step::new(step.case, &counted).all.len() as f64;
                        *metrics = Metrics { count, ..Metrics::NAN };
                    }
                }),
            ]),
        Fault::new(
            "row-dropped-for-one-nan",
            "a row of which one token could not be scored is left out, scored tokens and all",
        )
        .seen("nanmean over rows of means that are not nanmeans themselves")
        .under("{unscored: skip, unit: row-mean}")
        .gives(&[|case, options, _| {
            let mut fewer = case.clone();
            for part in &mut fewer.shards {
                for (mut mask, values) in part.mask.rows_mut().into_iter().zip(part.values.rows()) {
                    if mask.iter().zip(values).any(|(kept, x)| *kept && x.is_nan()) {
                        mask.fill(false);
                    }
                }
            }
            Step::new(&fewer, options).metrics().into()
        }]),
    ]
}

/// Other deviations.
fn deviations() -> Vec<Fault> {
    vec![
        Fault::new("mean-of-rank-deviations", "the mean over ranks of each one's deviation")
            .seen("trl #5620, of means; a deviation is averaged no better")
            .made_of([
                changed(|step, metrics| {
                    let some = step.filled().map(|rank| variance(rank, step.options.ddof).sqrt());
                    let some: Vec<f64> = some.filter(|x| x.is_finite()).collect();
                    if !some.is_empty() {
                        metrics.std = some.iter().sum::<f64>() / some.len() as f64;
                    }
                }),
                changed(|step, metrics| {
                    let own = |rank: &Vec<[f64; 2]>| variance(rank, step.options.ddof).sqrt();
                    let all: f64 = step.filled().map(|rank| zero_for_nan(own(rank))).sum();
                    metrics.std = all / step.filled().count() as f64;
                }),
                changed(|step, metrics| {
                    let all: f64 =
                        step.filled().map(|rank| variance(rank, step.options.ddof).sqrt()).sum();
                    metrics.std = all / step.filled().count() as f64;
                }),
            ]),
        Fault::new("mean-of-rank-variances", "the root of the mean over ranks of their variances")
            .seen("trl #5620, of means; the means of ranks are apart too")
            .made_of([
                changed(|step, metrics| {
                    let own = |rank: &Vec<[f64; 2]>| variance(rank, step.options.ddof);
                    let all: f64 = step.filled().map(|rank| zero_for_nan(own(rank))).sum();
                    metrics.std = (all / step.filled().count() as f64).sqrt();
                }),
                changed(|step, metrics| {
                    let all: f64 =
                        step.filled().map(|rank| variance(rank, step.options.ddof)).sum();
                    metrics.std = (all / step.filled().count() as f64).sqrt();
                }),
                changed(|step, metrics| {
                    let own =
                        |rank: &Vec<[f64; 2]>| zero_for_nan(variance(rank, step.options.ddof));
                    let all: f64 = step.filled().map(|rank| own(rank) * rank.len() as f64).sum();
                    metrics.std = (all / metrics.count).sqrt();
                }),
            ]),
        Fault::new("epsilon-in-the-deviation", "ε under the root, or added to the deviation")
            .seen("a deviation that is to be divided by, reported")
            .made_of([1e-4, 1e-5, 1e-6, 1e-8].into_iter().flat_map(|epsilon: f64| {
                [
                    changed(move |_, metrics| metrics.std = (metrics.std.powi(2) + epsilon).sqrt()),
                    changed(move |_, metrics| metrics.std += epsilon),
                ]
            })),
        Fault::new("other-degrees-of-freedom", "the squares are divided by n + 1, or by n - 2")
            .seen("n for the number that was counted before the last one")
            .made_of([-1.0, 2.0].map(|ddof: f64| {
                changed(move |step, metrics| {
                    let degrees = metrics.count - ddof;
                    if metrics.count > f64::from(step.options.ddof) && degrees > 0.0 {
                        metrics.std = (squares(&step.all) / degrees).sqrt();
                    }
                })
            })),
        Fault::new("deviation-of-rank-means", "how far the means of the ranks are apart")
            .seen("NeMo-RL #1818 (0eb5fffec): what each rank reported was reduced once more")
            .made_of([changed(|step, metrics| {
                let means: Vec<[f64; 2]> = step.filled().map(|rank| [mean(rank), 0.0]).collect();
                let apart = variance(&means, step.options.ddof).sqrt();
                metrics.std = if apart.is_finite() { apart } else { 0.0 };
            })]),
        Fault::new(
            "variance-within-ranks",
            "the squares are taken from the mean of each rank, not from that of all",
        )
        .seen("a pooled variance without the part between groups (Chan et al. 1983 have it)")
        .made_of([changed(|step, metrics| {
            let squares: f64 = step.filled().map(|rank| squares(rank)).sum();
            let degrees = metrics.count - f64::from(step.options.ddof);
            metrics.std = if degrees > 0.0 { (squares / degrees).sqrt() } else { metrics.std };
        })]),
        Fault::new("variance-for-deviation", "the root is missing")
            .seen("verl masked_var, reported as a deviation")
            .made_of([changed(|_, metrics| metrics.std = metrics.std.powi(2))]),
        Fault::new(
            "variance-of-squares",
            "E[x²] - E[x]² in f32: nothing is left of a small spread far from 0",
        )
        .seen("one all-reduce of sums and squares; Chan et al. 1983 say what it costs")
        .made_of([changed(|step, metrics| {
            let narrow = || step.all.iter().map(|pair| pair[0] as f32);
            let count = step.all.len() as f32;
            let mean = narrow().sum::<f32>() / count;
            let spread = (narrow().map(|x| x * x).sum::<f32>() / count - mean * mean).max(0.0);
            let degrees = count - f32::from(step.options.ddof);
            if degrees > 0.0 {
                metrics.std = f64::from((spread * count / degrees).sqrt());
            }
        })]),
        Fault::new(
            "biased-for-unbiased-variance",
            "the variance divides by n where n - 1 is declared, or the reverse",
        )
        .seen("torch.var is unbiased, numpy.var is not")
        .as_if(&[|options| Options { ddof: 1 - options.ddof, ..options }]),
    ]
}

/// What is explained of the targets.
fn explained() -> Vec<Fault> {
    vec![
        Fault::new("explained-variance-averaged", "the mean over ranks of what each one explains")
            .seen("prime-rl #2056 (3dcff28e0), of means")
            .made_of([
                changed(|step, metrics| {
                    let own = step.filled().map(|rank| step.of(rank).explained);
                    let own: Vec<f64> = own.filter(|x| x.is_finite()).collect();
                    if !own.is_empty() && metrics.explained.is_finite() {
                        metrics.explained = own.iter().sum::<f64>() / own.len() as f64;
                    }
                }),
                changed(|step, metrics| {
                    let own = step.filled().map(|rank| step.of(rank).explained);
                    let own: Vec<f64> = own.filter(|x| x.is_finite()).collect();
                    metrics.explained = own.iter().sum::<f64>() / own.len() as f64;
                }),
                changed(|step, metrics| {
                    let own: f64 = step.filled().map(|rank| step.of(rank).explained).sum();
                    metrics.explained = own / step.filled().count() as f64;
                }),
                changed(|step, metrics| {
                    let own: f64 =
                        step.filled().map(|rank| zero_for_nan(step.of(rank).explained)).sum();
                    metrics.explained = own / step.filled().count() as f64;
                }),
            ]),
        Fault::new(
            "squares-for-variance",
            "1 - E[(target - value)²]/Var(target): an offset of the values counts as error",
        )
        .seen("R², reported as explained variance")
        .made_of([ratio(|step| {
            let squares = step.all.iter().map(|[value, target]| (target - value).powi(2));
            let degrees = step.all.len() as f64 - f64::from(step.options.ddof);
            [squares.sum::<f64>() / degrees, step.variance_of(|[_, target]| target)]
        })]),
        Fault::new("variance-of-the-values", "divided by the variance of the values")
            .seen("the operands of `compute_explained_variance(values, returns)`, exchanged")
            .made_of([ratio(|step| {
                let left = step.variance_of(|[value, target]| target - value);
                [left, step.variance_of(|[value, _]| value)]
            })]),
        Fault::new("unexplained-variance", "Var(target - value)/Var(target), not taken from 1")
            .seen("half of the formula")
            .made_of([changed(|_, metrics| metrics.explained = 1.0 - metrics.explained)]),
        Fault::new(
            "targets-in-another-order",
            "values were sorted by length, and targets were not",
        )
        .seen("slime and verl sort rows by length to balance ranks: all columns must follow")
        .made_of([
            of_others(|step| {
                let targets = step.all.iter().rev().map(|pair| pair[1]);
                step.all.iter().zip(targets).map(|([value, _], target)| [*value, target]).collect()
            }),
            of_others(|step| sorted_values(&step.all, false)),
            of_others(|step| sorted_values(&step.all, true)),
        ]),
        Fault::new(
            "deviations-for-variances",
            "1 - σ(target - value)/σ(target): the squares are lost",
        )
        .seen("`std` where `var` is meant")
        .made_of([ratio(|step| {
            let left = step.variance_of(|[value, target]| target - value);
            [left.sqrt(), step.variance_of(|[_, target]| target).sqrt()]
        })]),
        Fault::new("squared-correlation", "r² of values and targets: a wrong scale is explained")
            .seen("`corrcoef(values, returns)[0, 1] ** 2`, which is R² of a fit")
            .made_of([changed(|step, metrics| {
                let (values, targets) =
                    (step.variance_of(|[x, _]| x), step.variance_of(|[_, t]| t));
                let both = step.variance_of(|[x, t]| x + t);
                if values > 0.0 && targets > 0.0 {
                    let covariance = (both - values - targets) / 2.0;
                    metrics.explained = covariance.powi(2) / (values * targets);
                }
            })]),
        Fault::new("epsilon-above-too", "ε is added to the variance of what is left too")
            .seen("`(a + eps) / (b + eps)`, against 0/0")
            .under("{ev_epsilon: 1.0e-2}")
            .made_of([ratio(|step| {
                let left = step.variance_of(|[value, target]| target - value);
                [left + step.options.ev_epsilon, step.variance_of(|[_, target]| target)]
            })]),
        Fault::new(
            "equal-targets-explained",
            "equal targets give 0 (or 1, or what ε makes of them), for NaN",
        )
        .seen("0 for a variance of 0, where stable-baselines gives NaN")
        .made_of([
            equal_targets(|_| 0.0),
            equal_targets(|_| 1.0),
            equal_targets(|left| 1.0 - left / 1e-8),
            equal_targets(|left| if left == 0.0 { 1.0 } else { 0.0 }),
            equal_targets(|left| 1.0 - left / 0.0),
        ]),
    ]
}

/// Options that are read wrong, or not at all.
fn options() -> Vec<Fault> {
    vec![
        Fault::new("rows-for-tokens", "one number a row (its mean, its sum), where tokens count")
            .seen("trl #1705 (5bcb8ad0d): means of sequences for a mean of tokens")
            .as_if(&[
                |options| Options { unit: Unit::RowMean, ..options },
                |options| Options { unit: Unit::RowSum, ..options },
            ]),
        Fault::new("tokens-for-rows", "one number a token where rows count: long rows weigh more")
            .seen("an option without effect")
            .under("{unit: row-mean}")
            .as_if(&[|options| Options { unit: Unit::Token, ..options }]),
        Fault::new("row-sums-for-row-means", "the sum of each row where its mean is declared")
            .seen("verl's scores are sums of rows, and its lengths are not")
            .under("{unit: row-mean}")
            .as_if(&[|options| Options { unit: Unit::RowSum, ..options }]),
        Fault::new("row-means-for-row-sums", "the mean of each row where its sum is declared")
            .seen("verl's scores are sums of rows, and its lengths are not")
            .under("{unit: row-sum}")
            .as_if(&[|options| Options { unit: Unit::RowMean, ..options }]),
        Fault::new("ev-epsilon-not-applied", "nothing is added to the variance of the targets")
            .seen("verl adds 1e-5, others nothing")
            .under("{ev_epsilon: 1.0e-2}")
            .as_if(&[|options| Options { ev_epsilon: 0.0, ..options }]),
        Fault::new("ev-epsilon-unasked", "1e-5 (1e-2) is added to the variance of the targets")
            .seen("verl adds 1e-5, others nothing")
            .as_if(&[
                |options| Options { ev_epsilon: 1e-2, ..options },
                |options| Options { ev_epsilon: 1e-5, ..options },
            ]),
        Fault::new(
            "one-number-gives-nan",
            "the deviation of one number is NaN where 0 is declared",
        )
        .seen("ROLL #475, #476 (370cb24c)")
        .under("{one: zero}")
        .as_if(&[|options| Options { one: One::Nan, ..options }]),
        Fault::new(
            "one-number-gives-zero",
            "one number has a deviation of 0 where NaN is declared",
        )
        .seen("a guard against NaN where a reader is to see that there is none")
        .as_if(&[|options| Options { one: One::Zero, ..options }]),
        Fault::new("nothing-gives-nan", "0/0 of no number at all, where 0 is declared")
            .seen("verl #906; OpenRLHF masked_mean")
            .as_if(&[|options| Options { empty_mask: EmptyMask::Nan, ..options }]),
        Fault::new("nothing-gives-zero", "0 of no number at all, where NaN is declared")
            .seen("count.clamp(min=1), where TRL's nanmean gives NaN")
            .under("{empty_mask: nan}")
            .as_if(&[|options| Options { empty_mask: EmptyMask::Zero, ..options }]),
        Fault::new(
            "nothing-has-infinite-extremes",
            "the extremes of no number at all are ±∞, or the large numbers put under the mask",
        )
        .seen("`masked_fill(~mask, inf).min()`; TRL's nanmin gives NaN there")
        .made_of([f64::INFINITY, f64::from(f32::MAX), 1e9, 1e10, 1e8, 1e6].map(|large| {
            always(move |step, metrics| {
                if step.all.is_empty() {
                    (metrics.min, metrics.max) = (large, -large);
                }
            })
        })),
    ]
}

/// The seven numbers.
struct Metrics {
    mean: f64,
    min: f64,
    max: f64,
    std: f64,
    sum: f64,
    count: f64,
    explained: f64,
}

impl Metrics {
    const NAN: Metrics = Metrics {
        mean: f64::NAN,
        min: f64::NAN,
        max: f64::NAN,
        std: f64::NAN,
        sum: f64::NAN,
        count: f64::NAN,
        explained: f64::NAN,
    };
}

impl From<Metrics> for MetricReductionOutput {
    fn from(metrics: Metrics) -> Self {
        let Metrics { mean, min, max, std, sum, count, explained } = metrics;
        reference::output([mean, min, max, std, sum, count, explained])
    }
}

/// One step: the numbers of its ranks, and of all of them.
struct Step<'a> {
    case: &'a MetricReductionCase,
    options: &'a Options,
    ranks: Vec<Vec<[f64; 2]>>,
    all: Vec<[f64; 2]>,
}

impl<'a> Step<'a> {
    fn new(case: &'a MetricReductionCase, options: &'a Options) -> Step<'a> {
        let ranks: Vec<_> = case.shards.iter().map(|part| numbers(part, options)).collect();
        let all = ranks.concat();
        Step { case, options, ranks, all }
    }

    /// The right metrics.
    fn metrics(&self) -> Metrics {
        self.of(&self.all)
    }

    /// The right metrics of some numbers.
    fn of(&self, all: &[[f64; 2]]) -> Metrics {
        let none = if self.options.empty_mask == EmptyMask::Nan { f64::NAN } else { 0.0 };
        if all.is_empty() {
            let [mean, min, max, std, explained] = [none; 5];
            return Metrics { mean, min, max, std, sum: 0.0, count: 0.0, explained };
        }
        let few = all.len() <= usize::from(self.options.ddof);
        let std = match self.options.one {
            One::Zero if few => 0.0,
            _ => variance(all, self.options.ddof).sqrt(),
        };
        let other = |of: fn([f64; 2]) -> f64| -> Vec<[f64; 2]> {
            all.iter().map(|pair| [of(*pair), 0.0]).collect()
        };
        let of_targets = variance(&other(|[_, target]| target), self.options.ddof);
        let left = variance(&other(|[value, target]| target - value), self.options.ddof);
        let divisor = of_targets + self.options.ev_epsilon;
        let explained = if few || divisor == 0.0 { f64::NAN } else { 1.0 - left / divisor };
        let (min, max, sum, count) = (least(all), most(all), sum(all), all.len() as f64);
        Metrics { mean: mean(all), min, max, std, sum, count, explained }
    }

    /// The ranks that have a number.
    fn filled(&self) -> impl Iterator<Item = &Vec<[f64; 2]>> {
        self.ranks.iter().filter(|rank| !rank.is_empty())
    }

    /// The mean over the ranks that have a number of what each one reports.
    fn over_ranks(&self, report: fn(&[[f64; 2]]) -> f64) -> f64 {
        let reports: Vec<f64> = self.filled().map(|rank| report(rank)).collect();
        reports.iter().sum::<f64>() / reports.len() as f64
    }

    /// The mean, of which the mean of each rank weighs as much as a rank further on has numbers.
    fn weighted_by_another(&self, further: usize) -> f64 {
        let own = |rank: &Vec<[f64; 2]>| sum(rank) / rank.len().max(1) as f64;
        let counts = self.ranks.iter().cycle().skip(further).map(|rank| rank.len() as f64);
        let all: f64 = self.ranks.iter().zip(counts).map(|(rank, count)| own(rank) * count).sum();
        all / self.all.len() as f64
    }

    /// The mean of two places around the middle of the sorted numbers; 0 ends the lower half.
    fn middle(&self, places: fn(usize) -> [usize; 2]) -> f64 {
        let mut sorted: Vec<f64> = self.all.iter().map(|pair| pair[0]).collect();
        sorted.sort_by(f64::total_cmp);
        let [low, high] = places(sorted.len().div_ceil(2));
        let high = if sorted.len() % 2 == 1 { low } else { high };
        (sorted[low] + sorted[high]) / 2.0
    }

    /// Whether a token that is not masked has no value.
    fn some_unscored(&self) -> bool {
        self.case
            .shards
            .iter()
            .any(|part| part.values.iter().zip(&part.mask).any(|(x, kept)| *kept && x.is_nan()))
    }

    /// A variance over all ranks.
    fn variance_of(&self, of: fn([f64; 2]) -> f64) -> f64 {
        let numbers: Vec<[f64; 2]> = self.all.iter().map(|pair| [of(*pair), 0.0]).collect();
        variance(&numbers, self.options.ddof)
    }
}

fn sum(numbers: &[[f64; 2]]) -> f64 {
    numbers.iter().map(|pair| pair[0]).sum()
}

fn mean(numbers: &[[f64; 2]]) -> f64 {
    sum(numbers) / numbers.len() as f64
}

fn least(numbers: &[[f64; 2]]) -> f64 {
    numbers.iter().fold(f64::INFINITY, |least, pair| least.min(pair[0]))
}

fn most(numbers: &[[f64; 2]]) -> f64 {
    numbers.iter().fold(f64::NEG_INFINITY, |most, pair| most.max(pair[0]))
}

/// The squared distances from the mean; exactly 0 of a constant.
fn squares(numbers: &[[f64; 2]]) -> f64 {
    if numbers.windows(2).all(|pair| pair[0][0] == pair[1][0]) {
        return 0.0;
    }
    let mean = mean(numbers);
    numbers.iter().map(|pair| (pair[0] - mean).powi(2)).sum()
}

/// NaN of no more than `ddof` numbers.
fn variance(numbers: &[[f64; 2]], ddof: u8) -> f64 {
    let degrees = numbers.len() as f64 - f64::from(ddof);
    if degrees > 0.0 { squares(numbers) / degrees } else { f64::NAN }
}

fn zero_for_nan(x: f64) -> f64 {
    if x.is_nan() { 0.0 } else { x }
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

/// All tokens of a shard, of which the masked ones are 0.
fn cells(part: &Shard) -> Vec<[f64; 2]> {
    let both = part.values.iter().zip(&part.targets).zip(&part.mask);
    both.map(|((x, t), kept)| if *kept { [*x, *t] } else { [0.0; 2] }).collect()
}

/// What a mask of integers picks of rows: row 0 or 1, once for each token.
fn rows_picked(part: &Shard) -> Vec<[f64; 2]> {
    let last = part.mask.nrows() - 1;
    let picked = part.mask.iter().flat_map(|kept| {
        let row = usize::from(*kept).min(last);
        (0..part.mask.ncols()).map(move |at| [part.values[[row, at]], part.targets[[row, at]]])
    });
    picked.collect()
}

/// What a mask of integers picks of all tokens of a shard in one row: token 0 or 1.
fn cells_picked(part: &Shard) -> Vec<[f64; 2]> {
    let all: Vec<[f64; 2]> = part.values.iter().zip(&part.targets).map(|(x, t)| [*x, *t]).collect();
    part.mask.iter().map(|kept| all[usize::from(*kept).min(all.len() - 1)]).collect()
}

/// The same of all tokens of all shards in one row.
fn flat_picked(case: &MetricReductionCase) -> Vec<[f64; 2]> {
    let tokens = |part: &Shard| -> Vec<[f64; 2]> {
        part.values.iter().zip(&part.targets).map(|(x, t)| [*x, *t]).collect()
    };
    let all: Vec<[f64; 2]> = case.shards.iter().flat_map(tokens).collect();
    let masks = case.shards.iter().flat_map(|part| &part.mask);
    masks.map(|kept| all[usize::from(*kept).min(all.len() - 1)]).collect()
}

/// The sums of rows as a column, divided by their lengths as a row, and all of these added up.
fn outer_rows(part: &Shard) -> f64 {
    let lengths = part.mask.rows().into_iter().map(|row| row.iter().filter(|kept| **kept).count());
    let shares: f64 = lengths.map(|length| 1.0 / length.max(1) as f64).sum();
    sum(&cells(part)) * shares
}

/// The mean or the sum of each row, with its padding.
fn whole_rows(part: &Shard, unit: Unit) -> Vec<f64> {
    let divisor = if unit == Unit::RowSum { 1.0 } else { part.mask.ncols() as f64 };
    part.values.rows().into_iter().map(|row| row.sum() / divisor).collect()
}

/// Values in order, their targets where they were (or in order too, the other way round).
fn sorted_values(all: &[[f64; 2]], falling: bool) -> Vec<[f64; 2]> {
    let mut values: Vec<f64> = all.iter().map(|pair| pair[0]).collect();
    values.sort_by(f64::total_cmp);
    if falling {
        values.reverse();
    }
    values.into_iter().zip(all).map(|(value, pair)| [value, pair[1]]).collect()
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

/// The right metrics, of which some are changed where there is a number.
fn changed(change: impl Fn(&Step<'_>, &mut Metrics) + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let step = Step::new(case, options);
        let mut metrics = step.metrics();
        if !step.all.is_empty() {
            change(&step, &mut metrics);
        }
        metrics.into()
    })
}

/// The right metrics, of which some are changed, also where there is no number.
fn always(change: impl Fn(&Step<'_>, &mut Metrics) + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let step = Step::new(case, options);
        let mut metrics = step.metrics();
        change(&step, &mut metrics);
        metrics.into()
    })
}

/// The right metrics of other numbers, also where there is no number.
fn of_any(others: fn(&Step<'_>) -> Vec<[f64; 2]>) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let step = Step::new(case, options);
        step.of(&others(&step)).into()
    })
}

/// The right metrics of other numbers.
fn of_others(others: fn(&Step<'_>) -> Vec<[f64; 2]>) -> Variant {
    Variant::gives(move |case: &MetricReductionCase, options: &Options, _| {
        let step = Step::new(case, options);
        if step.all.is_empty() { step.metrics().into() } else { step.of(&others(&step)).into() }
    })
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

/// Another quotient under the 1 of `explained_variance`, where there is one.
fn ratio(of: fn(&Step<'_>) -> [f64; 2]) -> Variant {
    changed(move |step, metrics| {
        let [left, divisor] = of(step);
        let explained = 1.0 - left / (divisor + step.options.ev_epsilon);
        if metrics.explained.is_finite() && explained.is_finite() {
            metrics.explained = explained;
        }
    })
}

/// Another number where all targets are equal.
fn equal_targets(given: fn(f64) -> f64) -> Variant {
    changed(move |step, metrics| {
        if step.variance_of(|[_, target]| target) == 0.0 && step.options.ev_epsilon == 0.0 {
            metrics.explained = given(step.variance_of(|[value, target]| target - value));
        }
    })
}
