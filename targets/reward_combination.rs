//! `reward-combination` on tensors: several reward functions, weighed and added.

use shakedown::author::Component;
use shakedown::contracts::reward_combination::{
    Final, Normalise, Nothing, Options, RewardCombination, RewardCombinationOutput, Singleton,
    WeightNorm,
};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<RewardCombination> {
    tch::<RewardCombination>(move |case| {
        let Combined { combined, reward_mean, function_means } =
            reward_combination(&case.rewards, &case.groups, &options);
        RewardCombinationOutput {
            combined,
            reward_mean: Some(reward_mean),
            function_means: Some(function_means),
        }
    })
}

/// What comes of several reward functions.
#[derive(Debug)]
pub struct Combined {
    /// `[N]`: one number per completion.
    pub combined: Tensor,
    /// A scalar: the mean of the weighted raw rewards, to be logged.
    pub reward_mean: Tensor,
    /// `[K]`: the mean of each function over the rows that it scored, to be logged.
    pub function_means: Tensor,
}

/// The weighted sum of the scores, each function normalised in its group and the sums whitened
/// where that is declared. NaN is a score that is missing.
///
/// A function that gives a group one score adds exactly 0 there, whatever ε: scores are taken
/// relative to one of them before they are averaged, so nothing is left of a rounded mean.
///
/// # Shapes
/// `N` completions, `K` functions: rewards `[N, K]`, groups `[N]`, the result `[N]`. Takes memory
/// of the order `N²K`.
///
/// # Units
/// Those of the rewards, or deviations of them. Half formats are answered in f32.
///
/// # Errors
/// Panics where there are not as many weights as functions.
///
/// # Source
/// TRL `GRPOTrainer` (`sum_then_normalize`, `normalize_then_sum`); GDPO in verl and NeMo-RL.
pub fn reward_combination(rewards: &Tensor, groups: &Tensor, options: &Options) -> Combined {
    let rewards = rewards.to_kind(arithmetic(rewards.kind()));
    let scored = rewards.isnan().logical_not();
    let rewards = rewards.where_self(&scored, &rewards.zeros_like());
    let weights = weights(&rewards, options);
    let has_score = scored.any_dim(1, false);
    let weighed = |scores: &Tensor| (scores * &weights).sum_dim_intlist(1, false, None);

    let raw = weighed(&rewards);
    let counts = scored.sum_dim_intlist(0, false, rewards.kind());
    let sums = match options.normalise {
        Normalise::None => raw.shallow_clone(),
        Normalise::Group => weighed(&normalised(&rewards, &scored, groups, options)),
    };
    let nothing = match options.nothing {
        Nothing::Nan => f64::NAN,
        Nothing::Zero => 0.0,
    };
    Combined {
        combined: whitened(&sums, &has_score, options).where_scalarother(&has_score, nothing),
        // Sums of rows without a score are 0; without any row it is 0/0.
        reward_mean: raw.sum(None) / has_score.sum(rewards.kind()),
        function_means: rewards.sum_dim_intlist(0, false, None) / counts,
    }
}

/// `[K]`: the weight of each function.
fn weights(rewards: &Tensor, options: &Options) -> Tensor {
    let functions = rewards.size()[1] as usize;
    let weights = options.weights.clone().unwrap_or_else(|| vec![1.0; functions]);
    assert_eq!(weights.len(), functions, "one weight per function");
    let weights = Tensor::from_slice(&weights).to_device(rewards.device()).to_kind(rewards.kind());
    match options.weight_norm {
        WeightNorm::None => weights,
        WeightNorm::Sum => &weights / weights.sum(None),
    }
}

/// `[N, K]`: the scores, each function normalised over the rows of a group that it scored.
fn normalised(rewards: &Tensor, scored: &Tensor, groups: &Tensor, options: &Options) -> Tensor {
    let group = groups.unsqueeze(1).eq_tensor(&groups.unsqueeze(0));
    // [N, N, K]: whether row j counts for row i and function k.
    let set = group.unsqueeze(2).logical_and(&scored.unsqueeze(0));
    let spread = Spread::of(rewards, &set, 1);
    let divisor = match options.divide {
        true => spread.variance(options.ddof).sqrt() + options.epsilon,
        false => rewards.ones_like(),
    };
    let scores = quotient(&spread.difference(rewards), &divisor);
    let lone = match options.singleton {
        Singleton::Zero | Singleton::Avoid => rewards.zeros_like(),
        Singleton::Reward => rewards.shallow_clone(),
    };
    let scores = lone.where_self(&spread.count.eq(1.0), &scores);
    scores.where_self(scored, &rewards.zeros_like())
}

/// `[N]`: the sums over the batch of those rows that have a score, whitened where it is declared.
fn whitened(sums: &Tensor, has_score: &Tensor, options: &Options) -> Tensor {
    if options.r#final == Final::None {
        return sums.shallow_clone();
    }
    let spread = Spread::of(sums, has_score, 0);
    let variance = spread.variance(options.final_ddof);
    let divisor = match options.r#final {
        Final::Root => (variance + options.final_epsilon).sqrt(),
        Final::None | Final::Add => variance.sqrt() + options.final_epsilon,
    };
    let white = quotient(&spread.difference(sums), &divisor);
    white.where_self(&spread.count.gt(1.0), &sums.zeros_like())
}

/// Numbers of a set, relative to the first of them.
struct Spread {
    /// The first number.
    origin: Tensor,
    /// How far the members are from it; 0 for others.
    distance: Tensor,
    /// 1 for members.
    weight: Tensor,
    /// How many members.
    count: Tensor,
    /// The mean of the distances.
    mean: Tensor,
    /// The axis of the members.
    axis: i64,
}

impl Spread {
    /// Of numbers that broadcast to the shape of the set, whose members lie along an axis.
    fn of(numbers: &Tensor, set: &Tensor, axis: i64) -> Spread {
        let weight = set.to_kind(numbers.kind());
        let numbers = numbers.expand_as(set);
        let first = set.to_kind(Kind::Int64).argmax(axis, true);
        let origin = numbers.gather(axis, &first, false);
        let distance = (numbers - &origin) * &weight;
        let count = weight.sum_dim_intlist(axis, false, None);
        let mean = distance.sum_dim_intlist(axis, false, None) / &count;
        Spread { origin: origin.squeeze_dim(axis), distance, weight, count, mean, axis }
    }

    fn difference(&self, numbers: &Tensor) -> Tensor {
        numbers - &self.origin - &self.mean
    }

    /// NaN where there are too few members.
    fn variance(&self, ddof: u8) -> Tensor {
        let centred = (&self.distance - self.mean.unsqueeze(self.axis)) * &self.weight;
        let squares = centred.square().sum_dim_intlist(self.axis, false, None);
        squares / (&self.count - f64::from(ddof))
    }
}

/// The quotient, and 0 for 0/0.
fn quotient(difference: &Tensor, divisor: &Tensor) -> Tensor {
    (difference / divisor).where_self(&difference.ne(0.0), &difference.zeros_like())
}
