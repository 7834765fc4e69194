//! Known wrong behaviours of `group-advantage`: real bugs, and conventions mistaken for others.

mod normalisation;
mod rewards;
mod statistics;

use ndarray::Array1;

use super::{
    EpsilonMode, GroupAdvantage, GroupAdvantageCase, GroupAdvantageOutput, Options, Scale,
    Singleton, members, reference,
};
use shakedown_core::contract::fault;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<GroupAdvantage>;
type Variant = fault::Variant<GroupAdvantage>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [
        normalisation::groups(),
        normalisation::epsilon(),
        normalisation::deviations(),
        statistics::layouts(),
        statistics::statistics(),
        statistics::leave_one_out(),
        rewards::lone_and_constant_groups(),
        rewards::rewards(),
        rewards::afterwards(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn right(case: &GroupAdvantageCase, options: &Options, dtype: Dtype) -> GroupAdvantageOutput {
    reference::advantages(case, options, dtype)
}

/// Maps the scored rewards of each group; unscored rows get 0.
fn grouped(case: &GroupAdvantageCase, f: impl Fn(&[f64]) -> Vec<f64>) -> GroupAdvantageOutput {
    let mut advantages = Array1::zeros(case.rewards.len());
    for mut rows in members(case) {
        rows.retain(|row| !case.rewards[*row].is_nan());
        let rewards: Vec<f64> = rows.iter().map(|row| case.rewards[*row]).collect();
        if rows.is_empty() {
            continue;
        }
        for (row, advantage) in rows.iter().zip(f(&rewards)) {
            advantages[*row] = advantage;
        }
    }
    advantages.into()
}

/// The same, as a fault does it.
fn by_group(f: impl Fn(&[f64], &Options) -> Vec<f64> + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &GroupAdvantageCase, options: &Options, _| {
        grouped(case, |r| f(r, options))
    })
}

/// (r - mean) / divisor, group by group; lone rows as declared.
fn scaled(divisor: fn(&[f64], &Options) -> f64) -> Variant {
    by_group(move |r, options| match (r.len(), options.singleton) {
        (1, Singleton::Reward) => r.to_vec(),
        (1, _) => vec![0.0],
        _ => r.iter().map(|x| (x - mean(r)) / divisor(r, options)).collect(),
    })
}

/// (r - middle) / divisor, group by group: the middle is one of the sorted rewards.
fn about(middle: fn(&[f64]) -> f64) -> Variant {
    by_group(move |r, options| {
        let mut sorted = r.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = middle(&sorted);
        r.iter().map(|x| (x - middle) / divisor(r, options)).collect()
    })
}

/// (r - mean) / (deviation + ε), all in f32.
fn in_f32(rewards: &[f64], ddof: u8, epsilon: f32) -> Vec<f64> {
    let r: Vec<f32> = rewards.iter().map(|x| *x as f32).collect();
    let count = r.len() as f32;
    let mean = r.iter().sum::<f32>() / count;
    let squares = r.iter().map(|x| (x - mean).powi(2)).sum::<f32>();
    let std = (squares / (count - f32::from(ddof))).sqrt();
    r.iter().map(|x| f64::from((x - mean) / (std + epsilon))).collect()
}

fn in_half(half: Dtype) -> Variant {
    by_group(move |r, options| {
        if r.len() == 1 && options.singleton != Singleton::Reward {
            return vec![0.0];
        }
        let r: Vec<f64> = r.iter().map(|x| half.round(*x)).collect();
        let mean = half.round(mean(&r));
        let divisor = half.round(divisor(&r, options));
        r.iter().map(|x| half.round(half.round(x - mean) / divisor)).collect()
    })
}

/// The right advantages, each changed.
fn changed(change: fn(f64) -> f64) -> Variant {
    Variant::gives(move |case: &GroupAdvantageCase, options: &Options, dtype| {
        right(case, options, dtype).advantages.mapv(change).into()
    })
}

/// The right advantages, 0 in groups of a smaller deviation.
fn silenced(threshold: f64) -> Variant {
    Variant::gives(move |case: &GroupAdvantageCase, options: &Options, dtype| {
        let mut output = right(case, options, dtype);
        for rows in members(case) {
            let rewards: Vec<f64> = rows.iter().map(|row| scored(case, *row)).collect();
            if rows.len() > 1 && deviation(&rewards, options.ddof) < threshold {
                rows.iter().for_each(|row| output.advantages[*row] = 0.0);
            }
        }
        output
    })
}

fn unscored_as_zero(case: &mut GroupAdvantageCase) {
    case.rewards.mapv_inplace(|r| if r.is_nan() { 0.0 } else { r });
}

fn scored(case: &GroupAdvantageCase, row: usize) -> f64 {
    if case.rewards[row].is_nan() { 0.0 } else { case.rewards[row] }
}

fn all_scored(case: &GroupAdvantageCase) -> Vec<f64> {
    case.rewards.iter().copied().filter(|r| !r.is_nan()).collect()
}

fn mean(rewards: &[f64]) -> f64 {
    rewards.iter().sum::<f64>() / rewards.len() as f64
}

/// NaN where fewer than `ddof` + 1 rewards leave it undefined.
fn deviation(rewards: &[f64], ddof: u8) -> f64 {
    let mean = mean(rewards);
    let squares: f64 = rewards.iter().map(|r| (r - mean).powi(2)).sum();
    (squares / (rewards.len() as f64 - f64::from(ddof))).sqrt()
}

/// What the declared scale divides a group by; 1 where it is undefined.
fn divisor(rewards: &[f64], options: &Options) -> f64 {
    scale_of(rewards, rewards, options)
}

fn scale_of(rewards: &[f64], everyone: &[f64], options: &Options) -> f64 {
    let deviation = match options.scale {
        Scale::None => return 1.0,
        Scale::Std | Scale::LooStd => deviation(rewards, options.ddof),
        Scale::BatchStd => deviation(everyone, options.ddof),
    };
    match options.epsilon_mode {
        _ if deviation.is_nan() => 1.0,
        EpsilonMode::Add => deviation + options.epsilon,
        EpsilonMode::Clamp => deviation.max(options.epsilon),
    }
}

fn largest(rewards: &[f64]) -> f64 {
    rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn smallest(rewards: &[f64]) -> f64 {
    rewards.iter().copied().fold(f64::INFINITY, f64::min)
}
