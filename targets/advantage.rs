//! `group-advantage` on tensors: GRPO, Dr. GRPO, RLOO and batch scaling in one function.

use shakedown::author::Component;
use shakedown::contracts::group_advantage::{
    Baseline, EpsilonMode, GroupAdvantage, Options, Scale, Singleton,
};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<GroupAdvantage> {
    tch::<GroupAdvantage>(move |case| group_advantage(&case.rewards, &case.groups, &options))
}

/// The advantage of each completion: its reward, less the baseline, over the scale of its group.
///
/// A group whose rewards are all equal gets exactly 0, whatever ε: rewards are taken relative to
/// one of them before they are averaged, so nothing is left of a rounded mean.
///
/// # Shapes
/// `N` completions: rewards `[N]`, groups `[N]`, the result `[N]`. Takes memory of the order `N²`.
///
/// # Units
/// Those of the rewards, or deviations of the rewards where the scale divides by one. Half formats
/// are answered in f32.
///
/// # Errors
/// Panics where the two shapes differ.
///
/// # Source
/// Shao et al. 2024 (`mean`, `std`); Liu et al. 2025 (`mean`, `none`); Ahmadian et al. 2024
/// (`leave-one-out`, `none`); TRL `scale_rewards="batch"` (`batch-std`); NeMo-RL (`loo-std`).
pub fn group_advantage(rewards: &Tensor, groups: &Tensor, options: &Options) -> Tensor {
    let rewards = rewards.to_kind(arithmetic(rewards.kind()));
    let scored = rewards.isnan().logical_not();
    let rewards = rewards.where_self(&scored, &rewards.zeros_like());
    let batch = scored.expand([rewards.numel() as i64, -1], false);
    let group = groups.unsqueeze(1).eq_tensor(&groups.unsqueeze(0)).logical_and(&batch);
    let own = Tensor::eye(rewards.numel() as i64, (Kind::Bool, rewards.device()));
    let others = group.logical_and(&own.logical_not());

    let difference = match options.baseline {
        Baseline::Mean => Spread::of(&rewards, &group).difference(&rewards),
        Baseline::LeaveOneOut => Spread::of(&rewards, &others).difference(&rewards),
        Baseline::None => rewards.shallow_clone(),
    };
    let divisor = match options.scale {
        Scale::Std => protected(Spread::of(&rewards, &group).deviation(options), options),
        Scale::BatchStd => protected(Spread::of(&rewards, &batch).deviation(options), options),
        Scale::LooStd => {
            let deviation = Spread::of(&rewards, &others).deviation(options);
            let defined = deviation.gt(0.0); // NaN is not
            protected(deviation, options).where_self(&defined, &rewards.ones_like())
        }
        Scale::None => rewards.ones_like(),
    };
    let mut advantages = quotient(&difference, &divisor);

    if options.baseline != Baseline::None {
        let batch_of_one =
            options.scale == Scale::BatchStd && scored.sum(None).int64_value(&[]) == 1;
        let alone = if batch_of_one {
            scored.shallow_clone()
        } else {
            group.sum_dim_intlist(1, false, None).eq(1)
        };
        let lone = match options.singleton {
            Singleton::Zero | Singleton::Avoid => rewards.zeros_like(),
            Singleton::Reward if options.scale == Scale::BatchStd && !batch_of_one => {
                quotient(&rewards, &divisor)
            }
            Singleton::Reward => rewards.shallow_clone(),
        };
        advantages = lone.where_self(&alone, &advantages);
    }
    advantages.where_self(&scored, &rewards.zeros_like())
}

/// The rewards of each row's set, relative to the first of them.
struct Spread {
    /// `[N]`: the first reward of the set.
    origin: Tensor,
    /// `[N, N]`: the reward of the member, relative to the origin of the row.
    distance: Tensor,
    /// `[N, N]`: 1 for members of the row's set.
    weight: Tensor,
    /// `[N]`: how many members.
    count: Tensor,
    /// `[N]`: the mean of the distances; NaN for an empty set.
    mean: Tensor,
}

impl Spread {
    fn of(rewards: &Tensor, set: &Tensor) -> Spread {
        let weight = set.to_kind(rewards.kind());
        let count = sum(&weight);
        let origin = rewards.gather(0, &weight.argmax(1, false), false);
        let distance = rewards.unsqueeze(0) - origin.unsqueeze(1);
        let mean = sum(&(&distance * &weight)) / &count;
        Spread { origin, distance, weight, count, mean }
    }

    /// `[N]`: how far each row's own reward is from the mean of its set.
    fn difference(&self, rewards: &Tensor) -> Tensor {
        rewards - &self.origin - &self.mean
    }

    /// `[N]`: NaN where the set has too few members.
    fn deviation(&self, options: &Options) -> Tensor {
        let centred = &self.distance - self.mean.unsqueeze(1);
        let degrees = &self.count - f64::from(options.ddof);
        (sum(&(centred.square() * &self.weight)) / degrees).sqrt()
    }
}

fn sum(rows: &Tensor) -> Tensor {
    rows.sum_dim_intlist(1, false, None)
}

fn protected(deviation: Tensor, options: &Options) -> Tensor {
    match options.epsilon_mode {
        EpsilonMode::Add => deviation + options.epsilon,
        EpsilonMode::Clamp => deviation.clamp_min(options.epsilon),
    }
}

/// The quotient, and 0 for 0/0.
fn quotient(difference: &Tensor, divisor: &Tensor) -> Tensor {
    difference.where_self(&difference.eq(0.0), &(difference / divisor))
}
