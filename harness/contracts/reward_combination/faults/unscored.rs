//! Faults of scores that are missing, and of the means that are logged.

use ndarray::arr0;

use super::super::{Normalise, Nothing, Options, RewardCombinationCase, RewardCombinationOutput};
use super::{
    Fault, deviation, has_score, mean, members, normalised, right, scored, standard, summed, with,
};
use shakedown_core::value::place::Dtype;

/// Rows that some function, or none, scored.
pub(super) fn rows() -> Vec<Fault> {
    vec![
        Fault::new(
            "row-of-none-is-zero",
            "a row that no function scored sums to 0 and is compared with its siblings",
        )
        .seen("trl #5773, #5775, #5902 (1c7c7f988)")
        .under("{unscored: skip}")
        .as_if(&[|options| Options { nothing: Nothing::Zero, ..options }]),
        Fault::new(
            "row-of-none-is-nan",
            "a row that no function scored is NaN where 0 is declared",
        )
        .seen("the other way round than trl #5773: NaN reaches the loss")
        .under("{unscored: skip, nothing: zero}")
        .as_if(&[|options| Options { nothing: Nothing::Nan, ..options }]),
        Fault::new(
            "nan-spoils-the-row",
            "a row that one function did not score is NaN, whatever the others say",
        )
        .seen("`sum` for `nansum`")
        .under("{unscored: skip}")
        .gives(&[|case, options, dtype| {
            let mut output = right(case, options, dtype);
            for (combined, rewards) in output.combined.iter_mut().zip(case.rewards.rows()) {
                if rewards.iter().any(|reward| reward.is_nan()) {
                    *combined = f64::NAN;
                }
            }
            output
        }]),
        Fault::new("partly-scored-row-is-zero", "a row that one function did not score sums to 0")
            .seen("`nan_to_num` of the sum, for `nansum`")
            .under("{unscored: skip}")
            .gives(&[|case, options, dtype| {
                let mut output = right(case, options, dtype);
                for (combined, rewards) in output.combined.iter_mut().zip(case.rewards.rows()) {
                    let missing = rewards.iter().filter(|reward| reward.is_nan()).count();
                    if (1..rewards.len()).contains(&missing) {
                        *combined = 0.0;
                    }
                }
                output
            }]),
        Fault::new("unscored-counts-against-the-row", "a missing score is a score of -1")
            .seen("plausible: a penalty for what could not be judged")
            .under("{unscored: skip}")
            .on(&[|case, _| {
                for row in 0..case.rewards.nrows() {
                    if has_score(case, row) {
                        let mut rewards = case.rewards.row_mut(row);
                        rewards.iter_mut().filter(|one| one.is_nan()).for_each(|one| *one = -1.0);
                    }
                }
            }]),
        Fault::new(
            "partly-scored-rows-dropped",
            "a row that one function did not score counts as one that none did",
        )
        .seen("`any` for `all` over the functions, next to the lines of trl #5773")
        .under("{unscored: skip, nothing: zero}")
        .on(&[|case, _| {
            for mut rewards in case.rewards.rows_mut() {
                if rewards.iter().any(|reward| reward.is_nan()) {
                    rewards.fill(f64::NAN);
                }
            }
        }]),
        Fault::new(
            "unscored-counted-as-zero",
            "a missing score is a score of 0, also in the statistics of its group",
        )
        .seen("trl #5775: None becomes 0; prime-rl #3182 does it in its metrics on purpose")
        .under("{unscored: skip, normalise: group}")
        .on(&[|case, _| case.rewards.mapv_inplace(|r| if r.is_nan() { 0.0 } else { r })])
        .gives(&[|case, options, dtype| {
            let mut zeroed = case.clone();
            zeroed.rewards.mapv_inplace(|r| if r.is_nan() { 0.0 } else { r });
            let mut output = right(&zeroed, options, dtype);
            let nothing = if options.nothing == Nothing::Nan { f64::NAN } else { 0.0 };
            let none = (0..case.groups.len()).filter(|row| !has_score(case, *row));
            none.for_each(|row| output.combined[row] = nothing);
            output
        }]),
        Fault::new(
            "divided-by-the-whole-group",
            "the mean of a function is its sum over all rows of the group, scored or not",
        )
        .seen("`nansum / N` for `nanmean`, a neighbour of trl #5775")
        .under("{unscored: skip, normalise: group}")
        .gives(&[|case, options, dtype| {
            let mut scores = case.rewards.clone();
            for rows in members(case) {
                for function in 0..scores.ncols() {
                    let there = scored(case, &rows, function);
                    let given: Vec<f64> =
                        there.iter().map(|row| case.rewards[[*row, function]]).collect();
                    let all = rows.len() as f64;
                    let middle = given.iter().sum::<f64>() / all;
                    let squares: f64 = given.iter().map(|r| (r - middle).powi(2)).sum();
                    let deviation = (squares / (all - f64::from(options.ddof))).sqrt();
                    let divisor = if options.divide { deviation + options.epsilon } else { 1.0 };
                    for (row, reward) in there.iter().zip(&given) {
                        let z = (reward - middle) / divisor;
                        scores[[*row, function]] = if rows.len() < 2 { 0.0 } else { z };
                    }
                }
            }
            with(case, options, dtype, summed(case, &scores, options))
        }]),
        Fault::new("zero-is-unscored", "a row whose sum is 0 is taken for one that none scored")
            .seen("`if not reward` for `if reward is None`")
            .under("{unscored: skip}")
            .gives(&[|case, options, dtype| {
                let mut output = right(case, options, dtype);
                output.combined.mapv_inplace(|x| if x == 0.0 { f64::NAN } else { x });
                output
            }]),
        Fault::new(
            "zero-weight-is-unscored",
            "a row that only functions of weight 0 scored counts as one that none did",
        )
        .seen("functions that are switched off, left out before the missing scores are counted")
        .under("{weights: [1, 0], unscored: skip}")
        .on(&[|case, options| {
            let weights = options.raw_weights(case.rewards.ncols());
            for mut rewards in case.rewards.rows_mut() {
                let off = |(r, w): (&f64, &f64)| r.is_nan() || *w == 0.0;
                if rewards.iter().zip(&weights).all(off) {
                    rewards.fill(f64::NAN);
                }
            }
        }]),
        Fault::new(
            "unscored-shifts-its-siblings",
            "a missing score adds nothing itself, and counts as 0 in mean and deviation",
        )
        .seen("`nan_to_num` before the statistics, the mask after them")
        .under("{unscored: skip, normalise: group}")
        .gives(&[|case, options, dtype| {
            let mut zeroed = case.clone();
            zeroed.rewards.mapv_inplace(|r| if r.is_nan() { 0.0 } else { r });
            let scores = normalised(&zeroed, |r| standard(r, options));
            with(case, options, dtype, summed(case, &scores, options))
        }]),
        Fault::new("unscored-spoils-its-group", "one missing score makes the whole group NaN")
            .seen("`mean` for `nanmean`")
            .under("{unscored: skip, normalise: group}")
            .gives(&[in_its_function, |case, options, dtype| {
                let mut output = right(case, options, dtype);
                for rows in members(case) {
                    let missing = |row: &usize| case.rewards.row(*row).iter().any(|r| r.is_nan());
                    if rows.iter().any(missing) {
                        rows.iter().for_each(|row| output.combined[*row] = f64::NAN);
                    }
                }
                output
            }]),
        Fault::new(
            "weights-over-the-scored",
            "the weights of the functions that scored a row are scaled up to make up for the rest",
        )
        .seen("a weighted mean over what is there, where a missing score adds nothing")
        .under("{weights: [1, 0.5], unscored: skip}")
        .gives(&[|case, options, dtype| {
            let weights = super::weights(options, case.rewards.ncols());
            let all: f64 = weights.iter().sum();
            let mut output = right(case, options, dtype);
            for (combined, rewards) in output.combined.iter_mut().zip(case.rewards.rows()) {
                let there = rewards.iter().zip(&weights).filter(|(r, _)| !r.is_nan());
                let there: f64 = there.map(|(_, weight)| *weight).sum();
                *combined = if there == 0.0 { *combined } else { *combined * all / there };
            }
            output
        }]),
        Fault::new(
            "zero-weight-poisons",
            "0 times a missing score is NaN: a function that is switched off spoils its rows",
        )
        .seen("`(weights * rewards).sum()` with NaN among the rewards")
        .under("{weights: [1, 0], unscored: skip}")
        .gives(&[|case, options, dtype| {
            let weights = super::weights(options, case.rewards.ncols());
            let mut output = right(case, options, dtype);
            for (combined, rewards) in output.combined.iter_mut().zip(case.rewards.rows()) {
                let mut pairs = rewards.iter().zip(&weights);
                if pairs.any(|(reward, weight)| *weight == 0.0 && reward.is_nan()) {
                    *combined = f64::NAN;
                }
            }
            output
        }]),
        Fault::new(
            "row-of-none-in-the-statistics",
            "a row that no function scored counts as 0 when the batch is whitened",
        )
        .seen("`nothing` put in before the whitening, next to the lines of trl #5902")
        .under("{unscored: skip, nothing: zero, final: add}")
        .gives(&[|case, options, dtype| {
            let unwhitened = Options { r#final: super::Final::None, ..options.clone() };
            let sums = right(case, &unwhitened, dtype).combined;
            let all: Vec<f64> = sums.to_vec();
            let divisor = deviation(&all, options.final_ddof) + options.final_epsilon;
            let flat = super::is_constant(&all);
            let white = sums.mapv(|x| if flat { 0.0 } else { (x - mean(&all)) / divisor });
            with(case, options, dtype, white)
        }]),
    ]
}

/// The two means that are logged.
pub(super) fn metrics() -> Vec<Fault> {
    vec![
        Fault::new(
            "function-mean-over-all-rows",
            "`function_means` divides by all rows, also by those that a function did not score",
        )
        .seen("plausible: `nansum / N`, a neighbour of trl #5775")
        .under("{unscored: skip}")
        .gives(&[|case, options, dtype| {
            let mut output = right(case, options, dtype);
            let rows = case.groups.len() as f64;
            let means = output.function_means.iter_mut().flatten();
            for (mean, column) in means.zip(case.rewards.columns()) {
                let scored = column.iter().filter(|reward| !reward.is_nan()).count() as f64;
                *mean = if scored > 0.0 { *mean * scored / rows } else { 0.0 };
            }
            output
        }]),
        Fault::new(
            "reward-mean-over-all-rows",
            "`reward_mean` divides by all rows, also by those that no function scored",
        )
        .seen("plausible: a row of None that sums to 0, trl #5773")
        .under("{unscored: skip}")
        .gives(&[|case, options, dtype| {
            let mut output = right(case, options, dtype);
            let valued = valued(case) as f64;
            let share = valued / case.groups.len() as f64;
            let mean =
                output.reward_mean.map(|mean| if valued > 0.0 { mean * share } else { arr0(0.0) });
            output.reward_mean = mean;
            output
        }]),
        Fault::new("reward-mean-is-nan", "`reward_mean` is NaN as soon as one score is missing")
            .seen("`mean` for `nanmean` in what is logged")
            .under("{unscored: skip}")
            .gives(&[
                |case, options, dtype| {
                    let mut output = right(case, options, dtype);
                    if case.rewards.iter().any(|reward| reward.is_nan()) {
                        output.reward_mean = Some(arr0(f64::NAN));
                    }
                    output
                },
                |case, options, dtype| {
                    let mut output = right(case, options, dtype);
                    if valued(case) < case.groups.len() {
                        output.reward_mean = Some(arr0(f64::NAN));
                    }
                    output
                },
            ]),
        Fault::new(
            "reward-mean-of-the-function-means",
            "`reward_mean` is the weighted sum of the means of the functions",
        )
        .seen("right while every function scores every row, and not with missing scores")
        .under("{unscored: skip}")
        .gives(&[|case, options, dtype| {
            let output = right(case, options, dtype);
            let weights = super::weights(options, case.rewards.ncols());
            let means = output.function_means.iter().flatten();
            let terms = means.zip(weights).map(|(mean, weight)| mean * weight);
            let sum = terms.filter(|term| !term.is_nan()).sum();
            RewardCombinationOutput { reward_mean: Some(arr0(sum)), ..output }
        }]),
        Fault::new(
            "reward-mean-of-group-means",
            "`reward_mean` is the mean of the groups' means, so that small groups count more",
        )
        .seen("a mean per prompt and a mean of those; compare verl #1047")
        .gives(&[|case, options, dtype| {
            let raw = Options {
                normalise: Normalise::None,
                r#final: super::Final::None,
                ..options.clone()
            };
            let sums = right(case, &raw, dtype).combined;
            let mut means = Vec::new();
            for rows in members(case) {
                let there = rows.iter().filter(|row| has_score(case, **row));
                let there: Vec<f64> = there.map(|row| sums[*row]).collect();
                if !there.is_empty() {
                    means.push(mean(&there));
                }
            }
            let reward_mean = Some(arr0(mean(&means)));
            RewardCombinationOutput { reward_mean, ..right(case, options, dtype) }
        }]),
        Fault::new(
            "function-means-of-complete-rows",
            "`function_means` leaves out the rows that another function did not score",
        )
        .seen("`any` for `all` over the functions, next to the lines of trl #5773")
        .under("{unscored: skip}")
        .gives(&[|case, options, dtype| {
            let complete = case.rewards.rows().into_iter();
            let complete: Vec<usize> = complete
                .enumerate()
                .filter(|(_, rewards)| !rewards.iter().any(|reward| reward.is_nan()))
                .map(|(row, _)| row)
                .collect();
            let columns = case.rewards.columns().into_iter();
            let means = columns
                .map(|column| mean(&complete.iter().map(|row| column[*row]).collect::<Vec<f64>>()));
            let function_means = Some(means.collect());
            RewardCombinationOutput { function_means, ..right(case, options, dtype) }
        }]),
        Fault::new(
            "function-means-of-the-normalised",
            "`function_means` are the means of the normalised scores, which are 0",
        )
        .seen("the columns are normalised in place before they are logged")
        .under("{normalise: group}")
        .gives(&[|case, options, dtype| {
            let scores = normalised(case, |r| standard(r, options));
            let means = scores.columns().into_iter().map(|column| {
                mean(&column.iter().copied().filter(|x| !x.is_nan()).collect::<Vec<f64>>())
            });
            let function_means = Some(means.collect());
            RewardCombinationOutput { function_means, ..right(case, options, dtype) }
        }]),
        Fault::new(
            "reward-mean-of-the-normalised",
            "`reward_mean` is the mean of the result, which normalising has made 0",
        )
        .seen("the reward is logged after it was replaced by the advantage")
        .under("{normalise: group}")
        .gives(&[|case, options, dtype| {
            let output = right(case, options, dtype);
            let valued = (0..case.groups.len()).filter(|row| has_score(case, *row));
            let valued: Vec<f64> = valued.map(|row| output.combined[row]).collect();
            RewardCombinationOutput { reward_mean: Some(arr0(mean(&valued))), ..output }
        }]),
    ]
}

/// A function that lacks one score of a group gives NaN to all of it, which adds nothing.
fn in_its_function(
    case: &RewardCombinationCase,
    options: &Options,
    dtype: Dtype,
) -> RewardCombinationOutput {
    let mut spoilt = case.clone();
    for rows in members(case) {
        for function in 0..case.rewards.ncols() {
            if scored(case, &rows, function).len() < rows.len() {
                rows.iter().for_each(|row| spoilt.rewards[[*row, function]] = f64::NAN);
            }
        }
    }
    with(case, options, dtype, right(&spoilt, options, dtype).combined)
}

fn valued(case: &RewardCombinationCase) -> usize {
    (0..case.groups.len()).filter(|row| has_score(case, *row)).count()
}
