//! The definition of `group-advantage` in plain f64, with the scale of every number.

use ndarray::{Array1, Dimension};

use super::{
    Baseline, EpsilonMode, GroupAdvantageCase, Options, Scale, Singleton, Unscored, members,
};
use crate::tolerance::{Expected, Number};

/// The mean, the deviation and the largest magnitude of some rewards.
struct Statistics {
    mean: f64,
    /// `None` where fewer than `ddof` + 1 rewards leave it undefined.
    deviation: Option<f64>,
    magnitude: f64,
}

fn statistics(rewards: &[f64], ddof: u8) -> Statistics {
    let count = rewards.len() as f64;
    let magnitude = rewards.iter().fold(0.0, |largest: f64, r| largest.max(r.abs()));
    let constant = rewards.windows(2).all(|pair| pair[0] == pair[1]);
    let mean = if constant {
        rewards.first().copied().unwrap_or(0.0)
    } else {
        rewards.iter().sum::<f64>() / count
    };
    let squares: f64 = rewards.iter().map(|r| (r - mean) * (r - mean)).sum();
    let degrees = count - f64::from(ddof);
    let deviation = (degrees > 0.0).then(|| (squares / degrees).sqrt());
    Statistics { mean, deviation, magnitude }
}

/// No deviation to divide by; such cases are not valid.
const UNDEFINED: Number = Number { value: f64::NAN, ..Number::OPEN };

fn protected(deviation: f64, options: &Options) -> f64 {
    match options.epsilon_mode {
        EpsilonMode::Add => deviation + options.epsilon,
        EpsilonMode::Clamp => deviation.max(options.epsilon),
    }
}

/// What the definition gives, advantage by advantage.
///
/// The scale of (r − b)/σ' is (m + |A|·m)/σ' + |A| with m the largest reward of the statistics:
/// a rounded mean is off by u·m, and so is a deviation made of the differences.
pub(super) fn advantages(case: &GroupAdvantageCase, options: &Options) -> Vec<Expected> {
    let mut numbers = Array1::from_elem(case.rewards.len(), Number::new(0.0, 0.0));
    let scored = |rows: &[usize]| -> Vec<usize> {
        rows.iter().copied().filter(|row| !case.rewards[*row].is_nan()).collect()
    };
    let rewards_of =
        |rows: &[usize]| -> Vec<f64> { rows.iter().map(|row| case.rewards[*row]).collect() };
    let everyone = scored(&(0..case.rewards.len()).collect::<Vec<_>>());
    let batch = statistics(&rewards_of(&everyone), options.ddof);

    for rows in members(case) {
        let rows = match options.unscored {
            Unscored::Exclude => scored(&rows),
            Unscored::Avoid => rows,
        };
        let rewards = rewards_of(&rows);
        let group = statistics(&rewards, options.ddof);
        let alone = rows.len() == 1 || (options.scale == Scale::BatchStd && everyone.len() == 1);
        for (place, row) in rows.iter().enumerate() {
            numbers[*row] = if alone && options.baseline != Baseline::None {
                singleton(rewards[place], &batch, everyone.len(), options)
            } else {
                advantage(place, &rewards, &group, &batch, options)
            };
        }
    }
    vec![Expected {
        field: "advantages",
        numbers: numbers.into_dimensionality::<ndarray::IxDyn>().expect("any shape is dynamic"),
        terms: case.rewards.raw_dim().size(),
    }]
}

fn without(rewards: &[f64], place: usize) -> Vec<f64> {
    rewards.iter().enumerate().filter(|(i, _)| *i != place).map(|(_, r)| *r).collect()
}

/// A group of one: 0, or its reward, which some libraries divide by 1 + ε.
fn singleton(reward: f64, batch: &Statistics, batch_size: usize, options: &Options) -> Number {
    match options.singleton {
        Singleton::Zero | Singleton::Avoid => Number::new(0.0, 0.0),
        Singleton::Reward if options.scale == Scale::BatchStd && batch_size > 1 => {
            let divisor = protected(batch.deviation.unwrap_or(0.0), options);
            quotient(reward, reward.abs(), batch.magnitude, divisor)
        }
        Singleton::Reward => {
            Number { slack: reward.abs() * options.epsilon, ..Number::new(reward, reward.abs()) }
        }
    }
}

fn advantage(
    place: usize,
    rewards: &[f64],
    group: &Statistics,
    batch: &Statistics,
    options: &Options,
) -> Number {
    let reward = rewards[place];
    let others = || without(rewards, place);
    let (difference, terms) = match options.baseline {
        Baseline::Mean => (reward - group.mean, group.magnitude),
        Baseline::LeaveOneOut => {
            (reward - statistics(&others(), options.ddof).mean, group.magnitude)
        }
        Baseline::None => (reward, 0.0),
    };
    let undivided = Number::new(difference, terms + difference.abs());
    match options.scale {
        Scale::None => undivided,
        Scale::Std => match group.deviation {
            Some(deviation) => {
                quotient(difference, terms, group.magnitude, protected(deviation, options))
            }
            None => UNDEFINED,
        },
        Scale::BatchStd => match batch.deviation {
            Some(deviation) => {
                quotient(difference, terms, batch.magnitude, protected(deviation, options))
            }
            None => UNDEFINED,
        },
        Scale::LooStd => {
            let others = others();
            let Statistics { deviation, magnitude, .. } = statistics(&others, options.ddof);
            match deviation {
                None => undivided,
                Some(0.0) if others.iter().all(|r| sums_exactly(*r)) => undivided,
                // Whether the rounded deviation of equal rewards is 0 depends on the order of sums.
                Some(0.0) => Number::OPEN,
                Some(deviation) => {
                    quotient(difference, terms, magnitude, protected(deviation, options))
                }
            }
        }
    }
}

/// `difference / divisor`, where the difference is made of terms of magnitude `terms` and the
/// divisor of terms of magnitude `magnitude`.
fn quotient(difference: f64, terms: f64, magnitude: f64, divisor: f64) -> Number {
    if divisor == 0.0 {
        let value = if difference == 0.0 { 0.0 } else { difference / divisor };
        return Number { value, ..Number::OPEN };
    }
    let value = difference / divisor;
    Number::new(value, (terms + value.abs() * magnitude) / divisor + value.abs())
}

/// Whether sums of a few dozen of these numbers and of their squares are exact even in f32.
fn sums_exactly(reward: f64) -> bool {
    reward.abs() <= 64.0 && (reward * 8.0).fract() == 0.0
}
