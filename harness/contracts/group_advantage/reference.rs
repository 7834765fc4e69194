//! The reference implementation of `group-advantage`, as a trainer would write it.

use std::iter::Sum;

use num_traits::Float;

use super::{
    Baseline, EpsilonMode, GroupAdvantageCase, GroupAdvantageOutput, Options, Scale, Singleton,
    members,
};
use shakedown_core::value::place::Dtype;

/// The advantages, computed in the arithmetic of the dtype.
pub(super) fn advantages(
    case: &GroupAdvantageCase,
    options: &Options,
    dtype: Dtype,
) -> GroupAdvantageOutput {
    let groups = members(case);
    let advantages = match dtype.arithmetic() {
        Dtype::F64 => {
            let rewards: Vec<f64> = case.rewards.to_vec();
            normalised(&rewards, &groups, options)
        }
        _ => {
            let rewards: Vec<f32> = case.rewards.iter().map(|r| *r as f32).collect();
            normalised(&rewards, &groups, options).into_iter().map(f64::from).collect()
        }
    };
    GroupAdvantageOutput { advantages: advantages.into() }
}

/// Rewards are taken relative to the first scored one of their set before they are averaged: so
/// a constant set has deviation 0 and not a residue of rounding, whatever its size and ε.
struct Spread<F> {
    origin: F,
    mean: F,
    deviation: Option<F>,
}

impl<F: Float + Sum> Spread<F> {
    fn of(rewards: &[F], ddof: u8) -> Spread<F> {
        let origin = rewards.first().copied().unwrap_or_else(F::zero);
        let count = F::from(rewards.len()).expect("a count is a number");
        let mean = rewards.iter().map(|r| *r - origin).sum::<F>() / count;
        let squares = rewards.iter().map(|r| (*r - origin - mean).powi(2)).sum::<F>();
        let degrees = count - F::from(ddof).expect("ddof is a number");
        let deviation = (degrees > F::zero()).then(|| (squares / degrees).sqrt());
        Spread { origin, mean, deviation }
    }

    fn distance(&self, reward: F) -> F {
        reward - self.origin - self.mean
    }
}

/// The advantages of some rewards, whose groups are sets of rows. NaN is a reward without a score.
pub(crate) fn normalised<F: Float + Sum>(
    rewards: &[F],
    groups: &[Vec<usize>],
    options: &Options,
) -> Vec<F> {
    let scored: Vec<F> = rewards.iter().copied().filter(|r| !r.is_nan()).collect();
    let batch = Spread::of(&scored, options.ddof);
    let mut advantages = vec![F::zero(); rewards.len()];
    for rows in groups {
        let rows: Vec<usize> = rows.iter().copied().filter(|row| !rewards[*row].is_nan()).collect();
        let group: Vec<F> = rows.iter().map(|row| rewards[*row]).collect();
        let spread = Spread::of(&group, options.ddof);
        let lonely = group.len() == 1 || (options.scale == Scale::BatchStd && scored.len() == 1);
        for (place, row) in rows.iter().enumerate() {
            let reward = group[place];
            let others = || {
                let others = group.iter().enumerate().filter(|(other, _)| *other != place);
                Spread::of(&others.map(|(_, reward)| *reward).collect::<Vec<F>>(), options.ddof)
            };
            let difference = match (options.baseline, lonely) {
                (Baseline::None, _) => reward,
                (_, true) if options.singleton != Singleton::Reward => continue,
                (_, true) => reward,
                (Baseline::Mean, _) => spread.distance(reward),
                (Baseline::LeaveOneOut, _) => others().distance(reward),
            };
            let deviation = match options.scale {
                Scale::None => None,
                Scale::Std => spread.deviation,
                Scale::BatchStd => batch.deviation,
                Scale::LooStd => others().deviation.filter(|deviation| *deviation > F::zero()),
            };
            // A lone row keeps its reward, except that a batch deviation still divides it.
            let keeps = lonely
                && options.baseline != Baseline::None
                && (options.scale != Scale::BatchStd || scored.len() == 1);
            advantages[*row] = match deviation.filter(|_| !keeps) {
                None => difference,
                Some(_) if difference == F::zero() => F::zero(),
                Some(deviation) => difference / protected(deviation, options),
            };
        }
    }
    advantages
}

fn protected<F: Float>(deviation: F, options: &Options) -> F {
    let epsilon = F::from(options.epsilon).expect("ε is a number");
    match options.epsilon_mode {
        EpsilonMode::Add => deviation + epsilon,
        EpsilonMode::Clamp => deviation.max(epsilon),
    }
}
