//! Known wrong behaviours of `group-filter`: real bugs, and conventions mistaken for others.

use super::{
    Criterion, GroupFilter, GroupFilterCase, GroupFilterOutput, Options, Singleton, members,
    reference,
};
use shakedown_core::contract::fault;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<GroupFilter>;
type Variant = fault::Variant<GroupFilter>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [spreads(), ranges(), groups(), limits(), rows(), carried()];
    themes.into_iter().flatten().collect()
}

/// When a group is said to differ.
fn spreads() -> Vec<Fault> {
    vec![
        Fault::new(
            "mean-inside-is-no-spread",
            "a mean between 0 and 1 stands for a group that differs",
        )
        .seen("OpenRLHF #1270, #1272")
        .as_if(&[|options| Options {
            criterion: Criterion::Range,
            range: [0.0, 1.0],
            ..options
        }]),
        Fault::new("flat-groups-kept", "the groups that do not differ stay, and no others")
            .seen("mutation: the test is inverted, a list of what to drop for what to keep")
            .made_of([by_group(|metric, options| !stays(metric, options))]),
        Fault::new(
            "first-two-decide",
            "the first two rows, or the last two, stand for their group",
        )
        .seen("mutation: `group[0] != group[1]`")
        .made_of([
            by_spread(|metric| metric[0] != metric[1]),
            by_spread(|metric| metric[metric.len() - 2] != metric[metric.len() - 1]),
        ]),
        Fault::new("sign-lost", "the magnitude of the metric decides: -1 and 1 are alike")
            .seen("abs() of a score, or its square, made for penalties")
            .gives(&[|case, options, _| {
                let seen = GroupFilterCase { metric: case.metric.mapv(f64::abs), ..case.clone() };
                reference::carried(case, &flags(&reference::filter(&seen, options)))
            }]),
        Fault::new("ends-decide", "the first and the last row stand for their group")
            .seen("groups that are thought to be sorted by their reward")
            .made_of([by_spread(|metric| metric[0] != metric[metric.len() - 1])]),
        Fault::new(
            "deviation-compared-with-zero",
            "a group stays whose deviation about its rounded mean is not exactly 0",
        )
        .seen("verl `filter_groups`, slime: `std > 0`; the mean of equal numbers is rounded")
        .made_of([by_spread_in(|metric, dtype| {
            let f = |x: f64| dtype.arithmetic().round(x);
            let sum = metric.iter().fold(0.0, |sum, x| f(sum + x));
            let mean = f(sum / metric.len() as f64);
            metric.iter().any(|x| f(x - mean) != 0.0)
        })]),
        Fault::new(
            "variance-of-squares",
            "E[x²] - E[x]² is compared with 0, and does not vanish for equal numbers",
        )
        .seen("one-pass statistics of running sums")
        .made_of([by_spread_in(|metric, dtype| {
            let f = |x: f64| dtype.arithmetic().round(x);
            let count = metric.len() as f64;
            let sum = metric.iter().fold(0.0, |sum, x| f(sum + x));
            let squares = metric.iter().fold(0.0, |sum, x| f(sum + f(x * x)));
            let mean = f(sum / count);
            f(f(squares / count) - f(mean * mean)) > 0.0
        })]),
        Fault::new("small-spreads-dropped", "a spread of a hundredth or less is none")
            .seen("thresholds for scores of 0 and 1 on scores that are finer")
            .made_of([
                by_spread(|metric| most(metric) - least(metric) > 0.01),
                by_spread(|metric| most(metric) - least(metric) > 0.1),
            ]),
        Fault::new("scores-read-as-flags", "what is above 0 counts as right, all else as wrong")
            .seen("`acc > 0` on scores between 0 and 1")
            .made_of([by_spread(|metric| {
                metric.iter().any(|x| *x > 0.0) && !metric.iter().all(|x| *x > 0.0)
            })]),
        Fault::new("only-all-wrong-dropped", "constant groups stay unless all of them is 0")
            .seen("`if max(rewards) == 0: drop`: prompts that are too easy stay")
            .made_of([by_spread(|metric| metric.iter().any(|x| *x != 0.0))]),
        Fault::new("only-all-right-dropped", "constant groups stay unless all of them is 1")
            .seen("`if min(rewards) == 1: drop`: prompts that are too hard stay")
            .made_of([by_spread(|metric| metric.iter().any(|x| *x != 1.0))]),
        Fault::new(
            "only-zeros-and-ones-dropped",
            "constant groups stay unless all are 0 or all are 1",
        )
        .seen("`all right` and `all wrong` for \"they do not differ\"")
        .made_of([by_spread(|metric| {
            metric.iter().any(|x| *x != 0.0) && metric.iter().any(|x| *x != 1.0)
        })]),
        Fault::new("ones-counted", "only a score of 1 counts as right, all else as wrong")
            .seen("`reward == 1.0` on scores that are finer")
            .made_of([by_spread(|metric| {
                metric.contains(&1.0) && metric.iter().any(|x| *x != 1.0)
            })]),
        Fault::new("rewards-decide", "the rewards decide, and the metric is never read")
            .seen("verl-recipe #125: shaped rewards differ where the metric does not")
            .gives(&[|case, options, _| {
                let seen = GroupFilterCase { metric: case.rewards.clone(), ..case.clone() };
                let keep = flags(&reference::filter(&seen, options));
                reference::carried(case, &keep)
            }]),
        Fault::new("single-rows-stay", "a group of one row stays")
            .seen("verl's convention, `len(uids) == 1`, where NeMo-RL's is declared")
            .as_if(&[|options| Options { singleton: Singleton::Keep, ..options }]),
        Fault::new("single-rows-go", "a group of one row goes, since its deviation is 0")
            .seen("the reverse: evaluation prompts with one completion vanish")
            .under("{singleton: keep}")
            .as_if(&[|options| Options { singleton: Singleton::Drop, ..options }]),
    ]
}

/// When a mean is said to lie in a range.
fn ranges() -> Vec<Fault> {
    vec![
        Fault::new("sum-for-the-mean", "the sum of the group is compared with the range")
            .seen("mutation")
            .under("{criterion: range}")
            .made_of([by_range(|metric, [lo, hi]| {
                let sum: f64 = metric.iter().sum();
                lo < sum && sum < hi
            })]),
        Fault::new("edges-are-inside", "lo ≤ mean ≤ hi for lo < mean < hi")
            .seen("flat groups of 0 and 1 stay under OpenRLHF's range")
            .under("{criterion: range}")
            .made_of([
                by_range(|metric, [lo, hi]| lo <= mean(metric) && mean(metric) <= hi),
                by_range(|metric, [lo, hi]| lo <= mean(metric) && mean(metric) < hi),
                by_range(|metric, [lo, hi]| lo < mean(metric) && mean(metric) <= hi),
            ]),
        Fault::new("one-end-of-the-range", "the other end of the range is never read")
            .seen("`mean > lo` alone")
            .under("{criterion: range}")
            .made_of([
                by_range(|metric, [lo, _]| lo < mean(metric)),
                by_range(|metric, [_, hi]| mean(metric) < hi),
            ]),
        Fault::new("spread-for-the-range", "groups that differ stay, wherever their mean lies")
            .seen("DAPO's criterion where OpenRLHF's is declared")
            .under("{criterion: range}")
            .as_if(&[|options| Options { criterion: Criterion::Spread, ..options }]),
        Fault::new("every-row-inside", "each row must lie inside, or one of them")
            .seen("all() and any() for a mean")
            .under("{criterion: range}")
            .made_of([
                by_range(|metric, [lo, hi]| metric.iter().all(|x| lo < *x && *x < hi)),
                by_range(|metric, [lo, hi]| metric.iter().any(|x| lo < *x && *x < hi)),
            ]),
        Fault::new("mean-over-one-row-less", "the sum is divided by the number of rows less one")
            .seen("the baseline of the others for the mean of all")
            .under("{criterion: range}")
            .made_of([by_range(|metric, [lo, hi]| {
                let mean = metric.iter().sum::<f64>() / (metric.len() as f64 - 1.0).max(1.0);
                lo < mean && mean < hi
            })]),
        Fault::new("spread-besides-the-range", "a flat group goes although its mean lies inside")
            .seen("OpenRLHF #1272 asks for it")
            .under("{criterion: range}")
            .made_of([by_range(|metric, [lo, hi]| {
                let mean = mean(metric);
                lo < mean && mean < hi && most(metric) > least(metric)
            })]),
        Fault::new("median-for-the-mean", "the row in the middle stands for the mean")
            .seen("torch.median, which takes the lower of two; numpy.median, their mean")
            .under("{criterion: range}")
            .made_of([
                by_range(|metric, [lo, hi]| {
                    let [middle, _] = middle(metric);
                    lo < middle && middle < hi
                }),
                by_range(|metric, [lo, hi]| {
                    let [a, b] = middle(metric);
                    lo < (a + b) / 2.0 && (a + b) / 2.0 < hi
                }),
            ]),
        Fault::new("range-of-the-rewards", "the mean is that of the rewards, not of the metric")
            .seen("verl-recipe #125, for means")
            .under("{criterion: range}")
            .gives(&[|case, options, _| {
                let seen = GroupFilterCase { metric: case.rewards.clone(), ..case.clone() };
                reference::carried(case, &flags(&reference::filter(&seen, options)))
            }]),
    ]
}

/// Which rows belong together.
fn groups() -> Vec<Fault> {
    vec![
        Fault::new(
            "group-falls-apart",
            "the key of a group holds what differs between its rows: one becomes several",
        )
        .seen("NeMo-RL #2176 (c3bb1d787): later turns are part of the key")
        .made_of([
            keyed(|case, row| (case.groups[row], case.metric[row].to_bits())),
            keyed(|case, row| (case.groups[row], row as u64 / 2)),
            keyed(|case, row| (case.groups[row], case.rewards[row].to_bits())),
        ]),
        Fault::new("groups-run-together", "two prompts share a key: their rows are one group")
            .seen("verl #3280 (98676e8ad): the key is the prompt's text, which images share")
            .made_of([keyed(|case, row| {
                let groups = members(case);
                let at = groups.iter().position(|rows| rows.contains(&row)).unwrap_or(0);
                (at as i64 / 2, 0)
            })]),
        Fault::new("group-numbers-cut", "numbers of groups lose digits, and two prompts share one")
            .seen("uids cut to 32 or 8 bits or read as f32; a hash table of two buckets")
            .made_of([
                keyed(|case, row| (i64::from(case.groups[row] as i32), 0)),
                keyed(|case, row| (i64::from(case.groups[row] as i8), 0)),
                keyed(|case, row| (0, u64::from((case.groups[row] as f32).to_bits()))),
                keyed(|case, row| (case.groups[row].rem_euclid(2), 0)),
            ]),
        Fault::new("spread-of-the-batch", "all rows stay if any two of the batch differ")
            .seen("mutation")
            .made_of([keyed(|_, _| (0, 0))]),
        Fault::new(
            "groups-assumed-contiguous",
            "groups are as many rows each as the first one has",
        )
        .seen("`rewards.view(-1, n)`: layouts as disputed in trl #5030")
        .made_of([keyed(|case, row| {
            let size = members(case)[0].len();
            ((row / size) as i64, 0)
        })]),
        Fault::new("groups-strided", "rows i, i + K and i + 2K of K groups are taken for one")
            .seen("interleaved copies read as repeated ones, or the reverse")
            .made_of([keyed(|case, row| ((row % members(case).len()) as i64, 0))]),
        Fault::new("neighbours-are-a-group", "a group ends where another number follows")
            .seen("itertools.groupby on rows that are not sorted")
            .made_of([keyed(|case, row| {
                let changes = (1..=row).filter(|at| case.groups[*at] != case.groups[at - 1]);
                (changes.count() as i64, 0)
            })]),
        Fault::new("last-group-left-out", "the last group is never looked at")
            .seen("a loop that closes a group when the next one begins")
            .made_of([changed(|case, _, keep| {
                if let Some(rows) = members(case).last() {
                    rows.iter().for_each(|row| keep[*row] = false);
                }
            })]),
        Fault::new("first-group-decides", "what the first group is, all are")
            .seen("a flag of the first prompt that is broadcast over the batch")
            .made_of([changed(|_, _, keep| {
                let first = keep[0];
                keep.fill(first);
            })]),
    ]
}

/// How many groups stay, and which.
fn limits() -> Vec<Fault> {
    vec![
        Fault::new("limit-ignored", "all groups stay that differ")
            .seen("mutation; over-long batches after refills")
            .under("{limit: 1}")
            .as_if(&[|options| Options { limit: None, ..options }]),
        Fault::new("limit-counts-rows", "so many rows stay, not groups")
            .seen("a batch size in completions read as one in prompts")
            .under("{limit: 2}")
            .made_of([limited(|case, options, limit| {
                let keep = flags(&reference::filter(case, &free(options)));
                let kept = (0..keep.len()).filter(|row| keep[*row]);
                let rows: Vec<usize> = kept.take(limit).collect();
                (0..keep.len()).map(|row| rows.contains(&row)).collect()
            })]),
        Fault::new("limit-before-the-filter", "the first groups are taken, then filtered")
            .seen("prompts cut to the batch size before dynamic sampling")
            .under("{limit: 1}")
            .made_of([limited(|case, options, limit| {
                let keep = flags(&reference::filter(case, &free(options)));
                let first: Vec<usize> = members(case).into_iter().take(limit).flatten().collect();
                (0..keep.len()).map(|row| keep[row] && first.contains(&row)).collect()
            })]),
        Fault::new("limit-takes-the-last", "the last groups stay, not the first")
            .seen("`kept[-n:]`, a queue read from its other end")
            .under("{limit: 1}")
            .made_of([limited(|case, options, limit| {
                let keep = flags(&reference::filter(case, &free(options)));
                let mut groups = members(case);
                groups.retain(|rows| keep[rows[0]]);
                let dropped = groups.len().saturating_sub(limit);
                among(keep.len(), groups.split_off(dropped))
            })]),
        Fault::new("limit-by-the-spread", "of the groups that stay those of the largest spread do")
            .seen("the most telling prompts first, where the first are declared")
            .under("{limit: 1}")
            .made_of([limited(|case, options, limit| {
                sorted_limit(case, options, limit, |case, rows| {
                    let metric = metric(case, rows);
                    least(&metric) - most(&metric)
                })
            })]),
        Fault::new("limit-by-the-size", "of the groups that stay the largest do")
            .seen("`Counter.most_common`, which sorts")
            .under("{limit: 1}")
            .made_of([limited(|case, options, limit| {
                sorted_limit(case, options, limit, |_, rows| -(rows.len() as f64))
            })]),
        Fault::new("limit-by-the-last-row", "the groups that are complete first stay")
            .seen("groups in the order in which they are finished")
            .under("{limit: 1}")
            .made_of([limited(|case, options, limit| {
                sorted_limit(case, options, limit, |_, rows| rows[rows.len() - 1] as f64)
            })]),
        Fault::new("limit-by-the-number", "the groups of the least numbers stay")
            .seen("a dictionary that is sorted by its keys")
            .under("{limit: 1}")
            .made_of([limited(|case, options, limit| {
                let keep = flags(&reference::filter(case, &free(options)));
                let mut groups = members(case);
                groups.retain(|rows| keep[rows[0]]);
                groups.sort_by_key(|rows| case.groups[rows[0]]);
                groups.truncate(limit);
                among(keep.len(), groups)
            })]),
        Fault::new("limit-of-none-is-no-limit", "a limit of 0 limits nothing")
            .seen("`if limit:` for `if limit is not None`")
            .under("{limit: 0}")
            .as_if(&[|options| Options { limit: options.limit.filter(|l| *l != 0), ..options }]),
        Fault::new("limit-one-too-few", "one group less than the limit stays")
            .seen("a counter that starts at 1")
            .under("{limit: 2}")
            .as_if(&[|options| {
                let limit = options.limit.map(|limit| (limit - 1).max(0));
                Options { limit, ..options }
            }]),
        Fault::new("limit-one-too-many", "one group more than the limit stays")
            .seen("`<=` for `<` in the loop that counts")
            .under("{limit: 1}")
            .as_if(&[|options| Options { limit: options.limit.map(|limit| limit + 1), ..options }]),
    ]
}

/// Which rows of a group stay.
fn rows() -> Vec<Fault> {
    vec![
        Fault::new("best-row-alone", "of a group that stays only its best rows do")
            .seen("rejection sampling where whole groups are declared")
            .made_of([changed(|case, rows, keep| {
                let best = most(&metric(case, rows));
                for row in rows {
                    keep[*row] &= case.metric[*row] == best;
                }
            })]),
        Fault::new("first-row-alone", "of a group that stays only its first row does")
            .seen("the index of each prompt for those of its completions")
            .made_of([changed(|_, rows, keep| {
                rows[1..].iter().for_each(|row| keep[*row] = false)
            })]),
        Fault::new("average-rows-left-out", "of a group that stays rows on its mean go")
            .seen("rows without an advantage are dropped one by one")
            .made_of([changed(|case, rows, keep| {
                let mean = mean(&metric(case, rows));
                for row in rows {
                    keep[*row] &= case.metric[*row] != mean;
                }
            })]),
        Fault::new("others-decide", "a row stays where the other rows of its group differ")
            .seen("NeMo-RL: a leave-one-out deviation, compared with 0 row by row")
            .made_of([changed(|case, rows, keep| {
                for row in rows {
                    let others = rows.iter().filter(|other| *other != row);
                    let others: Vec<f64> = others.map(|other| case.metric[*other]).collect();
                    keep[*row] &= most(&others) > least(&others);
                }
            })]),
        Fault::new("smaller-groups-dropped", "groups with less rows than the largest go")
            .seen("incomplete groups are left out, where nothing says so")
            .gives(&[|case, options, _| {
                let keep = flags(&reference::filter(case, options));
                let mut groups = members(case);
                let size = groups.iter().map(Vec::len).max().unwrap_or(0);
                groups.retain(|rows| rows.len() == size && keep[rows[0]]);
                reference::carried(case, &among(keep.len(), groups))
            }]),
        Fault::new(
            "fate-of-another-group",
            "groups by number have the fates of groups by appearance",
        )
        .seen("np.unique sorts, a dictionary does not: zip of the two")
        .gives(&[|case, options, _| {
            let right = flags(&reference::filter(case, options));
            let groups = members(case);
            let mut sorted = groups.clone();
            sorted.sort_by_key(|rows| case.groups[rows[0]]);
            let mut keep = right.clone();
            for (own, other) in groups.iter().zip(&sorted) {
                own.iter().for_each(|row| keep[*row] = right[other[0]]);
            }
            reference::carried(case, &keep)
        }]),
        Fault::new("equal-rows-left-out", "of a group that stays each value does once")
            .seen("deduplication of completions by their score")
            .made_of([changed(|case, rows, keep| {
                for (place, row) in rows.iter().enumerate() {
                    let again = rows[..place].iter().any(|r| case.metric[*r] == case.metric[*row]);
                    keep[*row] &= !again;
                }
            })]),
        Fault::new("last-row-left-out", "the last row of each group goes")
            .seen("a range that ends one row early")
            .made_of([changed(|_, rows, keep| {
                if let Some(last) = rows.last() {
                    keep[*last] = false;
                }
            })]),
        Fault::new("nothing-left-keeps-everything", "where no group would stay all do")
            .seen("a fallback for empty batches that nobody declared")
            .gives(&[|case, options, _| {
                let keep = flags(&reference::filter(case, options));
                let none = !keep.contains(&true);
                reference::carried(case, &keep.iter().map(|keep| *keep || none).collect::<Vec<_>>())
            }]),
        Fault::new("keep-in-the-order-of-groups", "the flags come back group by group")
            .seen("verl #1440, #1943: outputs left in sorted order")
            .gives(&[
                |case, options, _| {
                    let mut groups = members(case);
                    groups.sort_by_key(|rows| case.groups[rows[0]]);
                    in_order(case, options, &groups.concat())
                },
                |case, options, _| in_order(case, options, &members(case).concat()),
            ]),
        Fault::new("dropped-for-kept", "the flags say which rows go")
            .seen("a mask of what is filtered out")
            .gives(&[|case, options, _| {
                let output = reference::filter(case, options);
                let keep: Vec<bool> = flags(&output).iter().map(|keep| !keep).collect();
                GroupFilterOutput {
                    keep: keep.iter().map(|keep| f64::from(*keep)).collect(),
                    kept_ids: None,
                    kept_rewards: None,
                }
            }]),
    ]
}

/// What is carried along with the rows that stay.
fn carried() -> Vec<Fault> {
    vec![
        Fault::new(
            "rewards-of-the-unfiltered-batch",
            "the rewards are the first of the batch as it was before the filter",
        )
        .seen("NeMo-RL #3794")
        .gives(&[|case, options, _| {
            let output = reference::filter(case, options);
            let count = flags(&output).iter().filter(|keep| **keep).count();
            let first = case.rewards.iter().take(count).copied().collect();
            GroupFilterOutput { kept_rewards: Some(first), ..output }
        }]),
        Fault::new(
            "ids-of-the-unfiltered-batch",
            "the ids are the first of the batch as it was before the filter",
        )
        .seen("NeMo-RL 423d4a0aa: prompt ids")
        .gives(&[|case, options, _| {
            let output = reference::filter(case, options);
            let count = flags(&output).iter().filter(|keep| **keep).count();
            let first = case.ids.iter().take(count).map(|id| *id as f64).collect();
            GroupFilterOutput { kept_ids: Some(first), ..output }
        }]),
        Fault::new("unfiltered-lists", "ids and rewards are those of all rows")
            .seen("a batch of which one tensor alone was indexed")
            .gives(&[|case, options, _| GroupFilterOutput {
                kept_ids: Some(case.ids.mapv(|id| id as f64)),
                kept_rewards: Some(case.rewards.clone()),
                ..reference::filter(case, options)
            }]),
        Fault::new("lists-in-the-order-of-groups", "ids and rewards come group by group")
            .seen("a dictionary of groups that is flattened")
            .gives(&[|case, options, _| {
                let output = reference::filter(case, options);
                let mut rows = members(case).concat();
                rows.retain(|row| output.keep[*row] == 1.0);
                GroupFilterOutput {
                    kept_ids: Some(rows.iter().map(|row| case.ids[*row] as f64).collect()),
                    kept_rewards: Some(rows.iter().map(|row| case.rewards[*row]).collect()),
                    ..output
                }
            }]),
        Fault::new("rewards-in-another-order", "the rewards alone are sorted, or reversed")
            .seen("LLaMA-Factory #7576: scores of other rows")
            .gives(&[
                |case, options, _| with_rewards(case, options, |rewards| rewards.reverse()),
                |case, options, _| {
                    with_rewards(case, options, |rewards| rewards.sort_by(f64::total_cmp))
                },
                |case, options, _| {
                    with_rewards(case, options, |rewards| rewards.sort_by(|a, b| b.total_cmp(a)))
                },
            ]),
        Fault::new("ids-in-another-order", "the ids alone are sorted, or reversed")
            .seen("a set of ids, which forgets the order of its rows")
            .gives(&[
                |case, options, _| with_ids(case, options, |ids| ids.sort_by(f64::total_cmp)),
                |case, options, _| with_ids(case, options, |ids| ids.reverse()),
            ]),
        Fault::new("metric-for-the-rewards", "the metric is carried along, not the rewards")
            .seen("one name for the score and for what was made of it")
            .gives(&[|case, options, _| {
                let seen = GroupFilterCase { rewards: case.metric.clone(), ..case.clone() };
                reference::filter(&seen, options)
            }]),
        Fault::new("positions-for-ids", "the ids are the positions of the rows")
            .seen("indices of `nonzero`, which are ids in a batch that was never shuffled")
            .gives(&[|case, options, _| {
                let output = reference::filter(case, options);
                let keep = flags(&output);
                let kept = (0..keep.len()).filter(|row| keep[*row]);
                GroupFilterOutput { kept_ids: Some(kept.map(|row| row as f64).collect()), ..output }
            }]),
        Fault::new("groups-for-ids", "the ids are the numbers of the groups")
            .seen("prompt uids for those of completions")
            .gives(&[|case, options, _| {
                let output = reference::filter(case, options);
                let keep = flags(&output);
                let kept = (0..keep.len()).filter(|row| keep[*row]);
                let numbers = kept.map(|row| case.groups[row] as f64).collect();
                GroupFilterOutput { kept_ids: Some(numbers), ..output }
            }]),
        Fault::new("rewards-centred", "the mean of the kept rewards is taken off them")
            .seen("whitened scores where copies are declared")
            .gives(&[|case, options, _| {
                with_rewards(case, options, |rewards| {
                    let mean = mean(rewards);
                    rewards.iter_mut().for_each(|reward| *reward -= mean);
                })
            }]),
    ]
}

/// The right output, its rewards changed.
fn with_rewards(
    case: &GroupFilterCase,
    options: &Options,
    change: fn(&mut Vec<f64>),
) -> GroupFilterOutput {
    let output = reference::filter(case, options);
    let mut rewards = output.kept_rewards.as_ref().map_or_else(Vec::new, |kept| kept.to_vec());
    change(&mut rewards);
    GroupFilterOutput { kept_rewards: Some(rewards.into()), ..output }
}

/// The right output, its ids changed.
fn with_ids(
    case: &GroupFilterCase,
    options: &Options,
    change: fn(&mut Vec<f64>),
) -> GroupFilterOutput {
    let output = reference::filter(case, options);
    let mut ids = output.kept_ids.as_ref().map_or_else(Vec::new, |kept| kept.to_vec());
    change(&mut ids);
    GroupFilterOutput { kept_ids: Some(ids.into()), ..output }
}

/// The right output, its flags in the order of some rows.
fn in_order(case: &GroupFilterCase, options: &Options, rows: &[usize]) -> GroupFilterOutput {
    let output = reference::filter(case, options);
    let keep = rows.iter().map(|row| output.keep[*row]).collect();
    GroupFilterOutput { keep, ..output }
}

/// The flags of an output.
fn flags(output: &GroupFilterOutput) -> Vec<bool> {
    output.keep.iter().map(|keep| *keep == 1.0).collect()
}

/// The metric of some rows.
fn metric(case: &GroupFilterCase, rows: &[usize]) -> Vec<f64> {
    rows.iter().map(|row| case.metric[*row]).collect()
}

fn least(metric: &[f64]) -> f64 {
    metric.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(metric: &[f64]) -> f64 {
    metric.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The number in the middle, or the two of an even count.
fn middle(metric: &[f64]) -> [f64; 2] {
    let mut sorted = metric.to_vec();
    sorted.sort_by(f64::total_cmp);
    [(sorted.len() - 1) / 2, sorted.len() / 2].map(|at| sorted[at])
}

fn mean(metric: &[f64]) -> f64 {
    metric.iter().sum::<f64>() / metric.len().max(1) as f64
}

/// Whether a group of this metric stays, as declared.
fn stays(metric: &[f64], options: &Options) -> bool {
    match options.criterion {
        Criterion::Spread if metric.len() == 1 => options.singleton == Singleton::Keep,
        Criterion::Spread => most(metric) - least(metric) > options.tolerance,
        Criterion::Range => {
            let [lo, hi] = options.range;
            lo < mean(metric) && mean(metric) < hi
        }
    }
}

/// The options without a limit.
fn free(options: &Options) -> Options {
    Options { limit: None, ..options.clone() }
}

/// The flags of the first groups that stay, by a key.
fn sorted_limit(
    case: &GroupFilterCase,
    options: &Options,
    limit: usize,
    key: fn(&GroupFilterCase, &[usize]) -> f64,
) -> Vec<bool> {
    let keep = flags(&reference::filter(case, &free(options)));
    let mut groups = members(case);
    groups.retain(|rows| keep[rows[0]]);
    groups.sort_by(|a, b| key(case, a).total_cmp(&key(case, b)));
    groups.truncate(limit);
    among(keep.len(), groups)
}

/// The flags of rows that are in some groups.
fn among(count: usize, groups: Vec<Vec<usize>>) -> Vec<bool> {
    let rows = groups.concat();
    (0..count).map(|row| rows.contains(&row)).collect()
}

/// Groups of which something else says whether they stay; the limit is right.
fn filtered(
    case: &GroupFilterCase,
    options: &Options,
    stays: impl Fn(&[f64]) -> bool,
) -> GroupFilterOutput {
    let mut groups = members(case);
    groups.retain(|rows| stays(&metric(case, rows)));
    groups.truncate(options.limit.map_or(usize::MAX, |limit| limit as usize));
    reference::carried(case, &among(case.metric.len(), groups))
}

/// Another test of whether a group stays.
fn by_group(stays: fn(&[f64], &Options) -> bool) -> Variant {
    Variant::gives(move |case: &GroupFilterCase, options: &Options, _| {
        filtered(case, options, |metric| stays(metric, options))
    })
}

/// Another test of whether a group of two rows or more differs, in the arithmetic of a dtype.
fn by_spread_in(differs: fn(&[f64], Dtype) -> bool) -> Variant {
    Variant::gives(move |case: &GroupFilterCase, options: &Options, dtype| {
        let own = options.criterion == Criterion::Spread;
        filtered(case, options, |metric| match metric.len() {
            1 => stays(metric, options),
            _ if own => differs(metric, dtype),
            _ => stays(metric, options),
        })
    })
}

/// The same in plain numbers.
fn by_spread(differs: fn(&[f64]) -> bool) -> Variant {
    Variant::gives(move |case: &GroupFilterCase, options: &Options, _| {
        let own = options.criterion == Criterion::Spread;
        filtered(case, options, |metric| {
            if own && metric.len() > 1 { differs(metric) } else { stays(metric, options) }
        })
    })
}

/// Another test of whether a group lies in a range.
fn by_range(inside: fn(&[f64], [f64; 2]) -> bool) -> Variant {
    Variant::gives(move |case: &GroupFilterCase, options: &Options, _| {
        filtered(case, options, |metric| match options.criterion {
            Criterion::Range => inside(metric, options.range),
            Criterion::Spread => stays(metric, options),
        })
    })
}

/// Other rows that belong together: those of one key.
fn keyed(key: fn(&GroupFilterCase, usize) -> (i64, u64)) -> Variant {
    Variant::gives(move |case: &GroupFilterCase, options: &Options, _| {
        let mut keys: Vec<(i64, u64)> = Vec::new();
        let mut seen = case.clone();
        for row in 0..case.groups.len() {
            let own = key(case, row);
            let at = keys.iter().position(|known| *known == own).unwrap_or_else(|| {
                keys.push(own);
                keys.len() - 1
            });
            seen.groups[row] = at as i64;
        }
        reference::carried(case, &flags(&reference::filter(&seen, options)))
    })
}

/// The right flags, changed group by group, with what is carried along.
fn changed(change: fn(&GroupFilterCase, &[usize], &mut Vec<bool>)) -> Variant {
    Variant::gives(move |case: &GroupFilterCase, options: &Options, _| {
        let mut keep = flags(&reference::filter(case, options));
        members(case).iter().for_each(|rows| change(case, rows, &mut keep));
        reference::carried(case, &keep)
    })
}

/// Another limit, where there is one.
fn limited(keep: fn(&GroupFilterCase, &Options, usize) -> Vec<bool>) -> Variant {
    Variant::gives(move |case: &GroupFilterCase, options: &Options, _| match options.limit {
        Some(limit) => reference::carried(case, &keep(case, options, limit as usize)),
        None => reference::filter(case, options),
    })
}
