//! What must hold of `reward-combination`: the laws that apply, and one file for each of its own.

use ndarray::{Array1, ArrayD};

use crate::reward_combination::{
    Options, RewardCombination, RewardCombinationCase, WeightNorm, has_score, members, scored,
};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<RewardCombination>> {
    let mut all = laws::universal_and(&[("finite", &["single-row-is-nan", "epsilon-missing"])]);
    all.extend([
        laws::oracle::law().catching(&["biased-deviation", "logged-reward-unweighted"]),
        laws::row_permutation::law()
            .catching(&["groups-assumed-contiguous", "functions-transposed"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    RewardCombination;
    linear_in_weights,
    weighted_mean,
    functions_permute,
    zero_weight,
    nothing_scored,
    unscored_apart,
    zero_sum,
    scale_of_a_function,
    constant_function,
    groups_independent,
    relabelling,
    whitened,
    means_within,
    means_agree,
}

/// The weights, divided by their sum where that is declared.
fn weights(options: &Options, functions: usize) -> Vec<f64> {
    let raw = options.raw_weights(functions);
    let sum: f64 = raw.iter().sum();
    match options.weight_norm {
        WeightNorm::None => raw,
        WeightNorm::Sum => raw.into_iter().map(|weight| weight / sum).collect(),
    }
}

/// The rows that some function scored.
fn valued(case: &RewardCombinationCase) -> Vec<usize> {
    (0..case.groups.len()).filter(|row| has_score(case, *row)).collect()
}

/// The groups and functions of which two rows or more are scored, with these rows.
fn scored_together(case: &RewardCombinationCase) -> Vec<(usize, Vec<usize>)> {
    let mut together = Vec::new();
    for group in members(case) {
        for function in 0..case.rewards.ncols() {
            let rows = scored(case, &group, function);
            if rows.len() > 1 {
                together.push((function, rows));
            }
        }
    }
    together
}

/// What some rows were given by a function.
fn given(case: &RewardCombinationCase, rows: &[usize], function: usize) -> Vec<f64> {
    rows.iter().map(|row| case.rewards[[*row, function]]).collect()
}

/// Whether all numbers are one and the same.
fn is_constant(numbers: &[f64]) -> bool {
    numbers.iter().all(|x| *x == numbers[0])
}

/// The mean and the deviation of some numbers.
fn statistics(numbers: &[f64], ddof: u8) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (count - f64::from(ddof))).sqrt())
}

/// Breaks an invariant where two results of the same rows differ; NaN is an answer like any other.
fn same(what: &str, found: &Array1<f64>, expected: &Array1<f64>, allowed: &ArrayD<f64>) -> Outcome {
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        if !(found.is_nan() && expected.is_nan()) {
            near(format_args!("{what}, combined[{row}]"), *found, *expected, allowed[[row]])?;
        }
    }
    Ok(())
}
