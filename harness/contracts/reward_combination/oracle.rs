//! The definition of `reward-combination` in plain f64, with the scale of every number.

use ndarray::{Array1, arr0};

use super::{
    Final, Normalise, Nothing, Options, RewardCombinationCase, Singleton, WeightNorm, has_score,
    members, scored,
};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// A number with its rounding, and what the contract allows besides.
#[derive(Clone, Copy)]
struct Term {
    number: Scaled,
    slack: f64,
}

impl Term {
    const ZERO: Term = Term { number: Scaled { value: 0.0, scale: 0.0 }, slack: 0.0 };

    /// Nothing is known of it but that it is finite.
    const OPEN: Term = Term { number: Scaled { value: 0.0, scale: f64::INFINITY }, slack: 0.0 };

    fn number(self) -> Number {
        Number { slack: self.slack, ..self.number.into() }
    }
}

/// What the definition gives, output by output.
pub(super) fn combination(
    case: &RewardCombinationCase,
    options: &Options,
    dtype: Dtype,
) -> Vec<Expected> {
    let (rows, functions) = case.rewards.dim();
    let unit = dtype.arithmetic().unit_roundoff();
    let weights = weights(options, functions);
    let means = (0..functions).map(|k| mean(case.rewards.column(k).iter().copied()));
    let means: Array1<Number> = means.collect();
    let expected = |field, numbers, terms| Expected { field, numbers, terms };
    vec![
        expected("combined", combined(case, options, &weights, unit).into_dyn(), rows),
        expected("reward_mean", arr0(reward_mean(case, &weights)).into_dyn(), rows),
        expected("function_means", means.into_dyn(), rows),
    ]
}

fn weights(options: &Options, functions: usize) -> Vec<Scaled> {
    let raw: Vec<Scaled> =
        options.raw_weights(functions).into_iter().map(Scaled::rounded).collect();
    match options.weight_norm {
        WeightNorm::None => raw,
        WeightNorm::Sum => {
            let sum = Scaled::sum(raw.iter().copied());
            raw.into_iter().map(|weight| weight / sum).collect()
        }
    }
}

/// The mean of those that are not NaN; NaN where there is none.
fn mean(rewards: impl Iterator<Item = f64>) -> Number {
    let scored: Vec<Scaled> = rewards.filter(|r| !r.is_nan()).map(Scaled::exact).collect();
    if scored.is_empty() {
        return Number::NAN;
    }
    let count = scored.len() as f64;
    (Scaled::sum(scored) / count).into()
}

/// The mean of the weighted raw rewards.
fn reward_mean(case: &RewardCombinationCase, weights: &[Scaled]) -> Number {
    let rows = (0..case.groups.len()).filter(|row| has_score(case, *row));
    let sums: Vec<Scaled> = rows
        .map(|row| {
            let rewards = case.rewards.row(row);
            let scored = rewards.iter().zip(weights).filter(|(reward, _)| !reward.is_nan());
            Scaled::sum(scored.map(|(reward, weight)| *weight * *reward))
        })
        .collect();
    if sums.is_empty() {
        return Number::NAN;
    }
    let count = sums.len() as f64;
    (Scaled::sum(sums) / count).into()
}

fn combined(
    case: &RewardCombinationCase,
    options: &Options,
    weights: &[Scaled],
    unit: f64,
) -> Array1<Number> {
    let count = case.groups.len();
    let mut parts: Vec<Vec<Term>> = vec![Vec::new(); count];
    for rows in members(case) {
        for (function, weight) in weights.iter().enumerate() {
            let rows = scored(case, &rows, function);
            let rewards: Vec<f64> = rows.iter().map(|row| case.rewards[[*row, function]]).collect();
            for (row, z) in rows.iter().zip(normalised(&rewards, options, unit)) {
                let slack = weight.value.abs() * z.slack;
                parts[*row].push(Term { number: *weight * z.number, slack });
            }
        }
    }
    let valued: Vec<usize> = (0..count).filter(|row| !parts[*row].is_empty()).collect();
    let mut sums: Vec<Term> = valued.iter().map(|row| sum(&parts[*row])).collect();
    if options.r#final != Final::None {
        sums = whitened(&sums, options);
    }
    let nothing = match options.nothing {
        Nothing::Nan => Number::NAN,
        Nothing::Zero => Number::new(0.0, 0.0),
    };
    let mut numbers = Array1::from_elem(count, nothing);
    for (row, sum) in valued.into_iter().zip(sums) {
        numbers[row] = sum.number();
    }
    numbers
}

fn sum(terms: &[Term]) -> Term {
    let number = Scaled::sum(terms.iter().map(|term| term.number));
    Term { number, slack: terms.iter().map(|term| term.slack).sum() }
}

/// Whether all numbers are one and the same.
fn constant(numbers: &[f64]) -> bool {
    numbers.windows(2).all(|pair| pair[0] == pair[1])
}

/// The mean and the deviation of two numbers or more.
fn statistics(numbers: &[f64], ddof: u8) -> (f64, f64) {
    if constant(numbers) {
        return (numbers[0], 0.0);
    }
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / (count - f64::from(ddof))).sqrt())
}

/// The relative error of a variance E[r²] − μ² that is no longer small.
const LOST: f64 = 1.0 / 64.0;

/// What is weighed of the rewards that one function gave in one group.
///
/// With m the largest of them, a rounded mean is off by u·m, and so is a deviation made of the
/// differences. One made of E[r²] − μ², as NeMo-RL has it, is off by u·m²/σ.
fn normalised(rewards: &[f64], options: &Options, unit: f64) -> Vec<Term> {
    let exact = |reward: &f64| Term { number: Scaled::exact(*reward), slack: 0.0 };
    if options.normalise == Normalise::None {
        return rewards.iter().map(exact).collect();
    }
    match (rewards, options.singleton) {
        ([], _) => return Vec::new(),
        ([_], Singleton::Zero | Singleton::Avoid) => return vec![Term::ZERO],
        // Some libraries divide it by 1 + ε.
        ([reward], Singleton::Reward) => {
            let slack = if options.divide { reward.abs() * options.epsilon } else { 0.0 };
            return vec![Term { slack, ..exact(reward) }];
        }
        _ => {}
    }
    let is_constant = constant(rewards);
    coverage::event(&[if is_constant { "constant function" } else { "function" }]);
    let magnitude = rewards.iter().fold(0.0, |largest: f64, r| largest.max(r.abs()));
    if magnitude == 0.0 {
        return vec![Term::ZERO; rewards.len()];
    }
    let (mean, deviation) = statistics(rewards, options.ddof);
    let divisor = deviation + options.epsilon;
    let ratio = if is_constant { 1.0 } else { magnitude / deviation };
    let lost = unit * ratio * ratio > LOST;
    rewards
        .iter()
        .map(|reward| {
            let difference = reward - mean;
            let difference = Scaled { value: difference, scale: magnitude + difference.abs() };
            let number = match options.divide {
                false => difference,
                // A rounded mean leaves something to divide by nothing, or not.
                true if divisor == 0.0 || lost => return Term::OPEN,
                true => difference / Scaled { value: divisor, scale: magnitude * ratio.max(1.0) },
            };
            Term { number, slack: 0.0 }
        })
        .collect()
}

/// The sums less their mean, over their deviation.
fn whitened(sums: &[Term], options: &Options) -> Vec<Term> {
    if sums.len() < 2 {
        return vec![Term::ZERO; sums.len()];
    }
    let largest = |of: fn(&Term) -> f64| sums.iter().map(of).fold(0.0, f64::max);
    let magnitude = largest(|term| term.number.value.abs());
    let scale = largest(|term| term.number.scale);
    let slack = largest(|term| term.slack);
    if scale.is_infinite() {
        return vec![Term::OPEN; sums.len()];
    }
    if magnitude == 0.0 && scale == 0.0 {
        return vec![Term::ZERO; sums.len()];
    }
    let values: Vec<f64> = sums.iter().map(|term| term.number.value).collect();
    let (mean, deviation) = statistics(&values, options.final_ddof);
    let divisor = match options.r#final {
        Final::Root => (deviation * deviation + options.final_epsilon).sqrt(),
        Final::None | Final::Add => deviation + options.final_epsilon,
    };
    if divisor == 0.0 {
        return vec![Term::OPEN; sums.len()];
    }
    let off = scale + magnitude;
    sums.iter()
        .map(|term| {
            let difference = term.number.value - mean;
            let scale = term.number.scale + off + difference.abs();
            let number =
                Scaled { value: difference, scale } / Scaled { value: divisor, scale: off };
            Term { number, slack: (2.0 + number.value.abs()) * slack / divisor }
        })
        .collect()
}
