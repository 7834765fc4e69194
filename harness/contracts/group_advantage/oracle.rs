//! The definition of `group-advantage` in plain f64, with the scale of every number.

use ndarray::{Array1, Dimension};

use super::{
    Baseline, EpsilonMode, GroupAdvantageCase, Options, Scale, Singleton, Unscored, members,
};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};

/// A reward, and what is known of its rounding.
#[derive(Clone, Copy)]
pub(crate) struct Reward {
    /// The reward itself.
    pub value: f64,
    /// The magnitude of the terms that were added to make it.
    pub magnitude: f64,
    /// Whether it is the same number in whatever order they are added.
    pub exact: bool,
}

impl Reward {
    /// A reward that is an input and not a sum.
    fn given(value: f64) -> Reward {
        Reward { value, magnitude: value.abs(), exact: true }
    }
}

/// The mean, the deviation and the largest magnitude of some rewards.
struct Statistics {
    mean: f64,
    /// `None` where fewer than `ddof` + 1 rewards leave it undefined.
    deviation: Option<f64>,
    magnitude: f64,
}

fn statistics(rewards: &[Reward], ddof: u8) -> Statistics {
    let count = rewards.len() as f64;
    let magnitude = rewards.iter().fold(0.0, |largest: f64, r| largest.max(r.magnitude));
    let constant = rewards.windows(2).all(|pair| pair[0].value == pair[1].value);
    coverage::event(&[if constant { "constant group" } else { "group" }]);
    let mean = if constant {
        rewards.first().map_or(0.0, |r| r.value)
    } else {
        rewards.iter().map(|r| r.value).sum::<f64>() / count
    };
    let squares: f64 = rewards.iter().map(|r| (r.value - mean) * (r.value - mean)).sum();
    let degrees = count - f64::from(ddof);
    let deviation = (degrees > 0.0).then(|| (squares / degrees).sqrt());
    // Sums beyond f64 have no scale: what is made of them is left out.
    let sum: f64 = rewards.iter().map(|r| r.value.abs()).sum();
    let magnitude = if (sum + squares).is_finite() { magnitude } else { f64::NAN };
    Statistics { mean, deviation, magnitude }
}

/// Sums that are this close to each other, relative to their terms, may be equal once rounded.
const NEARLY_EQUAL: f64 = 1e-5;

/// No deviation to divide by; such cases are not valid.
const UNDEFINED: Number = Number { value: f64::NAN, ..Number::OPEN };

fn protected(deviation: f64, options: &Options) -> f64 {
    match options.epsilon_mode {
        EpsilonMode::Add => deviation + options.epsilon,
        EpsilonMode::Clamp => deviation.max(options.epsilon),
    }
}

/// What the definition gives, advantage by advantage.
pub(super) fn advantages(case: &GroupAdvantageCase, options: &Options) -> Vec<Expected> {
    let rewards: Vec<Reward> = case.rewards.iter().map(|reward| Reward::given(*reward)).collect();
    let numbers = Array1::from(of(&rewards, &members(case), options));
    vec![Expected {
        field: "advantages",
        numbers: numbers.into_dimensionality::<ndarray::IxDyn>().expect("any shape is dynamic"),
        terms: case.rewards.raw_dim().size(),
    }]
}

/// The advantages of some rewards, whose groups are sets of rows.
///
/// With m the largest reward of the statistics, a rounded mean is off by u·m, and so is a deviation
/// made of the differences.
pub(crate) fn of(all: &[Reward], groups: &[Vec<usize>], options: &Options) -> Vec<Number> {
    let mut numbers = vec![Number::new(0.0, 0.0); all.len()];
    let scored = |rows: &[usize]| -> Vec<usize> {
        rows.iter().copied().filter(|row| !all[*row].value.is_nan()).collect()
    };
    let rewards_of = |rows: &[usize]| -> Vec<Reward> { rows.iter().map(|row| all[*row]).collect() };
    let everyone = scored(&(0..all.len()).collect::<Vec<_>>());
    let batch = statistics(&rewards_of(&everyone), options.ddof);

    for rows in groups {
        let rows = match options.unscored {
            Unscored::Exclude => scored(rows),
            Unscored::Avoid => rows.clone(),
        };
        let rewards = rewards_of(&rows);
        let group = statistics(&rewards, options.ddof);
        let alone = rows.len() == 1;
        for (place, row) in rows.iter().enumerate() {
            numbers[*row] = if alone && options.baseline != Baseline::None {
                singleton(rewards[place], &batch, everyone.len(), options)
            } else {
                advantage(place, &rewards, &group, &batch, options)
            };
        }
    }
    numbers
}

fn without(rewards: &[Reward], place: usize) -> Vec<Reward> {
    rewards.iter().enumerate().filter(|(i, _)| *i != place).map(|(_, r)| *r).collect()
}

/// A group of one: 0, or its reward, which some libraries divide by 1 + ε.
fn singleton(reward: Reward, batch: &Statistics, batch_size: usize, options: &Options) -> Number {
    match options.singleton {
        Singleton::Zero | Singleton::Avoid => Number::new(0.0, 0.0),
        Singleton::Reward if options.scale == Scale::BatchStd && batch_size > 1 => {
            let divisor = protected(batch.deviation.unwrap_or(0.0), options);
            quotient(reward.value, reward.magnitude, batch.magnitude, divisor)
        }
        Singleton::Reward => Number {
            slack: reward.value.abs() * options.epsilon,
            ..Number::new(reward.value, reward.magnitude)
        },
    }
}

fn advantage(
    place: usize,
    rewards: &[Reward],
    group: &Statistics,
    batch: &Statistics,
    options: &Options,
) -> Number {
    let reward = rewards[place].value;
    let others = || without(rewards, place);
    let (difference, terms) = match options.baseline {
        Baseline::Mean => (reward - group.mean, group.magnitude),
        Baseline::LeaveOneOut => {
            (reward - statistics(&others(), options.ddof).mean, group.magnitude)
        }
        Baseline::None => (reward, rewards[place].magnitude - reward.abs()),
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
                Some(0.0) if others.iter().all(|r| r.exact && sums_exactly(r.value)) => undivided,
                // Whether the rounded deviation of equal rewards is 0 depends on the order of sums.
                Some(0.0) => Number::OPEN,
                Some(deviation)
                    if deviation <= NEARLY_EQUAL * magnitude && !others.iter().all(|r| r.exact) =>
                {
                    Number::OPEN
                }
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
    let difference = Scaled { value: difference, scale: terms };
    (difference / Scaled { value: divisor, scale: magnitude }).into()
}

/// Whether sums of a few dozen of these numbers and of their squares are exact even in f32.
pub(crate) fn sums_exactly(reward: f64) -> bool {
    reward.abs() <= 64.0 && (reward * 8.0).fract() == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advantages of one group of sums, each of these terms' magnitude.
    fn of_sums(values: &[f64], magnitude: f64, exact: &[bool], options: &Options) -> Vec<Number> {
        let sums = values.iter().zip(exact);
        let sums: Vec<Reward> =
            sums.map(|(value, exact)| Reward { value: *value, magnitude, exact: *exact }).collect();
        of(&sums, &[(0..values.len()).collect()], options)
    }

    #[test]
    fn a_reward_alone_may_be_divided_by_one_and_epsilon() {
        let options = Options { singleton: Singleton::Reward, epsilon: 0.5, ..Options::default() };
        for reward in [-2.0, 2.0] {
            let number = of_sums(&[reward], 2.0, &[true], &options)[0];
            assert_eq!(number, Number { value: reward, scale: 2.0, slack: 1.0 });
        }
    }

    #[test]
    fn it_is_open_whether_sums_deviate_that_rounding_may_make_equal() {
        let options =
            Options { baseline: Baseline::LeaveOneOut, scale: Scale::LooStd, ..Options::default() };
        let first = |sums: &[f64], magnitude: f64, exact: &[bool]| {
            of_sums(sums, magnitude, exact, &options)[0].scale
        };
        // The deviation of the last two is their distance over √2; what counts is 1e-5 of 100.
        let near = [500.0, 100.0, 100.0007];
        assert!(first(&near, 100.0, &[true, false, false]).is_infinite());
        assert!(first(&near, 100.0, &[true, true, false]).is_infinite());
        assert!(first(&near, 100.0, &[false, true, true]).is_finite());
        let apart = [500.0, 100.0, 100.002];
        assert!(first(&apart, 100.0, &[true, false, false]).is_finite());
    }

    #[test]
    fn sums_beyond_f64_leave_nothing_defined() {
        let first = |of: [f64; 2]| of_sums(&of, of[1], &[true, true], &Options::default())[0];
        assert!(first([-1e308, 1e308]).scale.is_nan());
        assert!(first([1e308, 1e308]).scale.is_nan());
        let Number { value, scale, .. } = first([-1e150, 1e150]);
        assert!(scale.is_finite() && (value + 0.5_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn eighths_to_64_are_added_without_rounding() {
        assert!([0.0, 0.125, -0.375, 64.0, -64.0].into_iter().all(sums_exactly));
        assert!(![0.1, 64.125, -64.125, -65.0].into_iter().any(sums_exactly));
    }
}
