//! The reference implementation of `group-advantage`, as a trainer would write it.

use std::iter::Sum;

use ndarray::Array1;
use num_traits::Float;

use super::{
    Baseline, EpsilonMode, GroupAdvantageCase, GroupAdvantageOutput, Options, Scale, Singleton,
};
use crate::place::Dtype;

/// The advantages, computed in the arithmetic of the dtype.
pub(super) fn advantages(
    case: &GroupAdvantageCase,
    options: &Options,
    dtype: Dtype,
) -> GroupAdvantageOutput {
    let advantages = match dtype.arithmetic() {
        Dtype::F64 => {
            let rewards: Vec<f64> = case.rewards.to_vec();
            normalised(&rewards, &case.groups, options)
        }
        _ => {
            let rewards: Vec<f32> = case.rewards.iter().map(|r| *r as f32).collect();
            normalised(&rewards, &case.groups, options).into_iter().map(f64::from).collect()
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

fn normalised<F: Float + Sum>(rewards: &[F], groups: &Array1<i64>, options: &Options) -> Vec<F> {
    let scored: Vec<F> = rewards.iter().copied().filter(|r| !r.is_nan()).collect();
    let batch = Spread::of(&scored, options.ddof);
    let mut advantages = vec![F::zero(); rewards.len()];
    for (row, reward) in rewards.iter().enumerate().filter(|(_, reward)| !reward.is_nan()) {
        let of_group = |other: &usize| groups[*other] == groups[row] && !rewards[*other].is_nan();
        let group: Vec<F> =
            (0..rewards.len()).filter(of_group).map(|other| rewards[other]).collect();
        let others: Vec<F> = (0..rewards.len())
            .filter(|other| of_group(other) && *other != row)
            .map(|other| rewards[other])
            .collect();
        let lonely = group.len() == 1 || (options.scale == Scale::BatchStd && scored.len() == 1);
        let difference = match (options.baseline, lonely) {
            (Baseline::None, _) => *reward,
            (_, true) if options.singleton != Singleton::Reward => continue,
            (_, true) => *reward,
            (Baseline::Mean, _) => Spread::of(&group, 0).distance(*reward),
            (Baseline::LeaveOneOut, _) => Spread::of(&others, 0).distance(*reward),
        };
        let deviation = match options.scale {
            Scale::None => None,
            Scale::Std => Spread::of(&group, options.ddof).deviation,
            Scale::BatchStd => batch.deviation,
            Scale::LooStd => Spread::of(&others, options.ddof)
                .deviation
                .filter(|deviation| *deviation > F::zero()),
        };
        // A lone row keeps its reward, except that a batch deviation still divides it.
        let keeps = lonely
            && options.baseline != Baseline::None
            && (options.scale != Scale::BatchStd || scored.len() == 1);
        advantages[row] = match deviation.filter(|_| !keeps) {
            None => difference,
            Some(_) if difference == F::zero() => F::zero(),
            Some(deviation) => {
                let epsilon = F::from(options.epsilon).expect("ε is a number");
                let divisor = match options.epsilon_mode {
                    EpsilonMode::Add => deviation + epsilon,
                    EpsilonMode::Clamp => deviation.max(epsilon),
                };
                difference / divisor
            }
        };
    }
    advantages
}
