//! The reference implementation of `reward-combination`, as a trainer would write it.

use std::iter::Sum;

use ndarray::{Array1, Array2, arr0};
use num_traits::Float;

use super::{
    Final, Normalise, Nothing, Options, RewardCombinationCase, RewardCombinationOutput, Singleton,
    WeightNorm, members,
};
use shakedown_core::value::place::Dtype;

/// The outputs, computed in the arithmetic of the dtype.
pub(super) fn combination(
    case: &RewardCombinationCase,
    options: &Options,
    dtype: Dtype,
) -> RewardCombinationOutput {
    let groups = members(case);
    match dtype.arithmetic() {
        Dtype::F64 => combine(&case.rewards, &groups, options),
        _ => combine(&case.rewards.mapv(|r| r as f32), &groups, options),
    }
}

fn number<F: Float>(x: f64) -> F {
    F::from(x).expect("it is a number")
}

fn mean<F: Float + Sum>(numbers: &[F]) -> F {
    numbers.iter().copied().sum::<F>() / number(numbers.len() as f64)
}

fn combine<F: Float + Sum + Into<f64> + 'static>(
    rewards: &Array2<F>,
    groups: &[Vec<usize>],
    options: &Options,
) -> RewardCombinationOutput {
    let (rows, functions) = rewards.dim();
    let weights: Vec<F> = weights(options, functions);
    let scored = |row: usize| -> Vec<usize> {
        (0..functions).filter(|k| !rewards[[row, *k]].is_nan()).collect()
    };
    let weighed = |scores: &Array2<F>, row: usize| -> F {
        scored(row).into_iter().map(|k| weights[k] * scores[[row, k]]).sum()
    };
    let valued: Vec<usize> = (0..rows).filter(|row| !scored(*row).is_empty()).collect();
    let of_valued =
        |scores: &Array2<F>| -> Vec<F> { valued.iter().map(|row| weighed(scores, *row)).collect() };

    let raw = of_valued(rewards);
    let function_means = rewards.columns().into_iter().map(|column| {
        mean(&column.iter().copied().filter(|r| !r.is_nan()).collect::<Vec<F>>()).into()
    });
    let sums = match options.normalise {
        Normalise::None => raw.clone(),
        Normalise::Group => of_valued(&normalised(rewards, groups, options)),
    };
    let nothing = match options.nothing {
        Nothing::Nan => f64::NAN,
        Nothing::Zero => 0.0,
    };
    let mut combined = Array1::from_elem(rows, nothing);
    for (row, sum) in valued.iter().zip(whitened(sums, options)) {
        combined[*row] = sum.into();
    }
    RewardCombinationOutput {
        combined,
        reward_mean: Some(arr0(mean(&raw).into())),
        function_means: Some(function_means.collect()),
    }
}

fn weights<F: Float + Sum>(options: &Options, functions: usize) -> Vec<F> {
    let weights: Vec<F> = options.raw_weights(functions).into_iter().map(number).collect();
    match options.weight_norm {
        WeightNorm::None => weights,
        WeightNorm::Sum => {
            let sum = weights.iter().copied().sum::<F>();
            weights.into_iter().map(|weight| weight / sum).collect()
        }
    }
}

/// Numbers are taken relative to the first of them before they are averaged: so equal ones have
/// deviation 0 and not a residue of rounding, however many they are and whatever ε.
struct Spread<F> {
    origin: F,
    mean: F,
    variance: F,
}

impl<F: Float + Sum> Spread<F> {
    fn of(numbers: &[F], ddof: u8) -> Spread<F> {
        let origin = numbers[0];
        let mean = mean(&numbers.iter().map(|x| *x - origin).collect::<Vec<F>>());
        let squares = numbers.iter().map(|x| (*x - origin - mean).powi(2)).sum::<F>();
        let degrees = number(numbers.len() as f64 - f64::from(ddof));
        Spread { origin, mean, variance: squares / degrees }
    }

    /// How far a number is from the mean, over the divisor that is made of the variance.
    fn standard(&self, x: F, divisor: impl Fn(F) -> F) -> F {
        match x - self.origin - self.mean {
            zero if zero == F::zero() => zero,
            distance => distance / divisor(self.variance),
        }
    }
}

/// The scores, each function normalised inside each group over the rows that it scored.
fn normalised<F: Float + Sum + 'static>(
    rewards: &Array2<F>,
    groups: &[Vec<usize>],
    options: &Options,
) -> Array2<F> {
    let mut scores = rewards.clone();
    for rows in groups {
        for mut column in scores.columns_mut() {
            let scored = |row: &usize| !column[*row].is_nan();
            let rows: Vec<usize> = rows.iter().copied().filter(scored).collect();
            match (&rows[..], options.singleton) {
                ([], _) | ([_], Singleton::Reward) => {}
                ([row], _) => column[*row] = F::zero(),
                _ => {
                    let group: Vec<F> = rows.iter().map(|row| column[*row]).collect();
                    let spread = Spread::of(&group, options.ddof);
                    for row in rows {
                        column[row] =
                            spread.standard(column[row], |variance| match options.divide {
                                true => variance.sqrt() + number(options.epsilon),
                                false => F::one(),
                            });
                    }
                }
            }
        }
    }
    scores
}

/// The sums, whitened over the batch where that is declared.
fn whitened<F: Float + Sum>(sums: Vec<F>, options: &Options) -> Vec<F> {
    if options.r#final == Final::None || sums.is_empty() {
        return sums;
    }
    let spread = Spread::of(&sums, options.final_ddof);
    let epsilon: F = number(options.final_epsilon);
    let divisor = |variance: F| match options.r#final {
        Final::Root => (variance + epsilon).sqrt(),
        Final::None | Final::Add => variance.sqrt() + epsilon,
    };
    sums.iter().map(|sum| spread.standard(*sum, divisor)).collect()
}
