//! Known wrong behaviours of `reward-combination`: real bugs, and conventions mistaken for others.

mod layout;
mod normalisation;
mod unscored;
mod weights;
mod whitening;

use ndarray::{Array1, Array2};

use super::{
    Final, Nothing, Options, RewardCombination, RewardCombinationCase, RewardCombinationOutput,
    Singleton, WeightNorm, has_score, members, reference, scored,
};
use shakedown_core::contract::fault;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<RewardCombination>;
type Variant = fault::Variant<RewardCombination>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [
        weights::weights(),
        weights::sums(),
        unscored::rows(),
        unscored::metrics(),
        normalisation::groups(),
        normalisation::deviations(),
        normalisation::lone_and_constant(),
        layout::layouts(),
        layout::formats(),
        whitening::whitening(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn right(case: &RewardCombinationCase, options: &Options, dtype: Dtype) -> RewardCombinationOutput {
    reference::combination(case, options, dtype)
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

/// The sums of the scores, as weighed, whitened and filled up as declared. NaN is no score.
fn summed(case: &RewardCombinationCase, scores: &Array2<f64>, options: &Options) -> Array1<f64> {
    let weights = weights(options, scores.ncols());
    let sums: Array1<f64> = scores
        .rows()
        .into_iter()
        .zip(case.rewards.rows())
        .map(|(scores, rewards)| {
            let terms = scores.iter().zip(&weights).zip(rewards);
            terms.filter(|(_, r)| !r.is_nan()).map(|((score, weight), _)| weight * score).sum()
        })
        .collect();
    whitened(case, sums, options)
}

/// The sums of rows, whitened and filled up as declared.
fn whitened(case: &RewardCombinationCase, mut sums: Array1<f64>, options: &Options) -> Array1<f64> {
    let rows: Vec<usize> = (0..sums.len()).filter(|row| has_score(case, *row)).collect();
    let valued: Vec<f64> = rows.iter().map(|row| sums[*row]).collect();
    if options.r#final != Final::None && !rows.is_empty() {
        let (mean, deviation) = (mean(&valued), deviation(&valued, options.final_ddof));
        let divisor = match options.r#final {
            Final::Root => (deviation.powi(2) + options.final_epsilon).sqrt(),
            Final::None | Final::Add => deviation + options.final_epsilon,
        };
        let flat = valued.iter().all(|x| *x == valued[0]);
        sums.mapv_inplace(|x| if flat { 0.0 } else { (x - mean) / divisor });
    }
    filled(case, sums, options)
}

/// The rows that no function scored, filled up as declared.
fn filled(case: &RewardCombinationCase, mut sums: Array1<f64>, options: &Options) -> Array1<f64> {
    let nothing = if options.nothing == Nothing::Nan { f64::NAN } else { 0.0 };
    (0..sums.len()).filter(|row| !has_score(case, *row)).for_each(|row| sums[row] = nothing);
    sums
}

/// The right output with other numbers for the rows.
fn with(
    case: &RewardCombinationCase,
    options: &Options,
    dtype: Dtype,
    combined: Array1<f64>,
) -> RewardCombinationOutput {
    RewardCombinationOutput { combined, ..right(case, options, dtype) }
}

/// Maps what each function gave in each group, to the rows that it scored.
fn by_group(f: impl Fn(&[f64], &Options) -> Vec<f64> + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &RewardCombinationCase, options: &Options, dtype| {
        let scores = normalised(case, |rewards| f(rewards, options));
        with(case, options, dtype, summed(case, &scores, options))
    })
}

/// The same, knowing how many rows the group has, scored or not.
fn by_size(f: fn(&[f64], usize, &Options) -> Vec<f64>) -> Variant {
    Variant::gives(move |case: &RewardCombinationCase, options: &Options, dtype| {
        let mut scores = case.rewards.clone();
        for rows in members(case) {
            for function in 0..scores.ncols() {
                let there = scored(case, &rows, function);
                let rewards: Vec<f64> = there.iter().map(|row| scores[[*row, function]]).collect();
                if !there.is_empty() {
                    let z = f(&rewards, rows.len(), options);
                    there.iter().zip(z).for_each(|(row, z)| scores[[*row, function]] = z);
                }
            }
        }
        with(case, options, dtype, summed(case, &scores, options))
    })
}

fn normalised(case: &RewardCombinationCase, f: impl Fn(&[f64]) -> Vec<f64>) -> Array2<f64> {
    let mut scores = case.rewards.clone();
    for rows in members(case) {
        for function in 0..scores.ncols() {
            let rows = scored(case, &rows, function);
            let rewards: Vec<f64> = rows.iter().map(|row| scores[[*row, function]]).collect();
            if !rows.is_empty() {
                for (row, score) in rows.iter().zip(f(&rewards)) {
                    scores[[*row, function]] = score;
                }
            }
        }
    }
    scores
}

/// (r - mean) / divisor for several rewards that differ; lone and equal ones as declared.
fn over(divisor: impl Fn(&[f64], &Options) -> f64 + Send + Sync + 'static) -> Variant {
    by_group(move |r, options| match r.len() {
        1 => lone(r, options),
        _ if is_constant(r) => vec![0.0; r.len()],
        _ => r.iter().map(|x| (x - mean(r)) / divisor(r, options)).collect(),
    })
}

/// What a function that scored one row is normalised to.
fn lone(rewards: &[f64], options: &Options) -> Vec<f64> {
    match options.singleton {
        Singleton::Reward => rewards.to_vec(),
        Singleton::Zero | Singleton::Avoid => vec![0.0],
    }
}

/// The right normalised scores of several rewards, in plain f64.
fn standard(r: &[f64], options: &Options) -> Vec<f64> {
    match r.len() {
        1 => lone(r, options),
        _ if is_constant(r) => vec![0.0; r.len()],
        _ => r.iter().map(|x| (x - mean(r)) / divisor(r, options)).collect(),
    }
}

/// What the declared options divide by.
fn divisor(rewards: &[f64], options: &Options) -> f64 {
    if options.divide { deviation(rewards, options.ddof) + options.epsilon } else { 1.0 }
}

/// The right rows, each changed.
fn changed(change: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &RewardCombinationCase, options: &Options, dtype| {
        let mut output = right(case, options, dtype);
        output.combined.mapv_inplace(&change);
        output
    })
}

fn is_constant(numbers: &[f64]) -> bool {
    numbers.iter().all(|x| *x == numbers[0])
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// NaN where fewer than `ddof` + 1 numbers leave it undefined.
fn deviation(numbers: &[f64], ddof: u8) -> f64 {
    let mean = mean(numbers);
    let squares: f64 = numbers.iter().map(|r| (r - mean).powi(2)).sum();
    (squares / (numbers.len() as f64 - f64::from(ddof))).sqrt()
}
