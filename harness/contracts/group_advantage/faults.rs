//! Known wrong behaviours of `group-advantage`: real bugs, and conventions mistaken for others.

use ndarray::Array1;

use super::{
    Baseline, EpsilonMode, GroupAdvantage, GroupAdvantageCase, GroupAdvantageOutput, Options,
    Scale, Singleton, members, reference,
};
use crate::contract::fault;
use crate::value::place::Dtype;

type Fault = fault::Fault<GroupAdvantage>;

type Variant = fault::Variant<GroupAdvantage>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [
        groups(),
        epsilon(),
        deviations(),
        layouts(),
        statistics(),
        leave_one_out(),
        lone_and_constant_groups(),
        rewards(),
        afterwards(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Rows that are not normalised, or as others are.
fn groups() -> Vec<Fault> {
    vec![
        Fault::new("mean-over-std-precedence", "r - mean/(std + ε) for (r - mean)/(std + ε)")
            .seen("prime-rl #390 (748158fa6)")
            .made_of([by_group(|r, options| {
                let shift = mean(r) / divisor(r, options);
                r.iter().map(|x| x - shift).collect()
            })]),
        Fault::new(
            "group-stride-applied-twice",
            "only groups 0, G, 2G, … of G rows are normalised, the others keep their raw rewards",
        )
        .seen("AReaL #225 (0b0d4eda9)")
        .under("{layout: contiguous}")
        .gives(&[|case, options, dtype| {
            let mut output = right(case, options, dtype);
            for (number, rows) in members(case).iter().enumerate() {
                if number % rows.len() != 0 {
                    rows.iter().for_each(|row| output.advantages[*row] = scored(case, *row));
                }
            }
            output
        }]),
        Fault::new(
            "every-row-its-own-group",
            "each row gets its raw reward, as if it were a group of its own",
        )
        .seen("Search-R1 9ec2fa9")
        .made_of([by_group(|r, _| r.to_vec())]),
        Fault::new(
            "one-row-unbiased-deviation",
            "a deviation with ddof 1 over one row, which is NaN",
        )
        .seen("SB3 #1028 (2cc1477f)")
        .gives(&[|case, options, dtype| {
            let mut output = right(case, options, dtype);
            for rows in members(case).iter().filter(|rows| rows.len() == 1) {
                output.advantages[rows[0]] = f64::NAN;
            }
            output
        }]),
        Fault::new("baseline-missing", "the group mean is never subtracted")
            .seen("REINFORCE port without its baseline; compare Search-R1 9ec2fa9")
            .as_if(&[|options| Options { baseline: Baseline::None, ..options }]),
    ]
}

/// ε: too large, too small, missing, or in another place.
fn epsilon() -> Vec<Fault> {
    vec![
        Fault::new(
            "epsilon-swallows-the-signal",
            "ε is so large that it shrinks the advantages (1, 0.1, 0.01, 1e-3 and others)",
        )
        .seen("TRL adds 1e-4, verl 1e-6: a constant for rewards of another size")
        .as_if(&[
            |options| Options { epsilon: 1.0, ..options },
            |options| Options { epsilon: 0.5, ..options },
            |options| Options { epsilon: 0.1, ..options },
            |options| Options { epsilon: 0.05, ..options },
            |options| Options { epsilon: 0.01, ..options },
            |options| Options { epsilon: 5e-3, ..options },
            |options| Options { epsilon: 1e-3, ..options },
            |options| Options { epsilon: 10.0, ..options },
        ]),
        Fault::new(
            "epsilon-of-another-size",
            "ε is smaller than declared (1e-4, 1e-5, 1e-6, 1e-8)",
        )
        .seen("TRL 1e-4, verl 1e-6, open-instruct 1e-8: a port with another library's constant")
        .under("{epsilon: 1.0e-3}")
        .as_if(&[
            |options| Options { epsilon: 1e-4, ..options },
            |options| Options { epsilon: 1e-5, ..options },
            |options| Options { epsilon: 1e-6, ..options },
            |options| Options { epsilon: 1e-8, ..options },
        ]),
        Fault::new("epsilon-missing", "nothing protects the division: a constant group gives 0/0")
            .seen("Shao et al. 2024 (DeepSeekMath) print (r - mean)/std; TRL adds 1e-4, verl 1e-6")
            .made_of([
                scaled(|r, options| deviation(r, options.ddof)),
                // In f32 the mean of equal rewards is not always the reward: 0/0 or ±0.7.
                by_group(|r, options| in_f32(r, options.ddof, 0.0)),
            ]),
        Fault::new(
            "residue-of-a-rounded-mean",
            "ε so small that the rounding of a constant group's mean becomes an advantage",
        )
        .seen("open-instruct adds 1e-8, OpenRLHF 1e-9: as small as the rounding of a mean in f32")
        .made_of([1e-8, 1e-10, 1e-12].map(|epsilon| {
            by_group(move |r, options| match r.len() {
                1 => vec![if options.singleton == Singleton::Reward {
                    f64::from(r[0] as f32)
                } else {
                    0.0
                }],
                _ => in_f32(r, options.ddof, epsilon),
            })
        })),
        Fault::new("epsilon-inside-the-root", "√(variance + ε) for std + ε")
            .seen("whitening code reused for groups")
            .made_of([scaled(|r, options| {
                (deviation(r, options.ddof).powi(2) + options.epsilon).sqrt()
            })]),
        Fault::new(
            "epsilon-clamped-for-added",
            "max(std, ε) where std + ε is declared, or the reverse",
        )
        .seen("TRL and verl add to the deviation; OpenRLHF's whitening clamps the variance")
        .under("{epsilon: 1.0e-3}")
        .as_if(&[|options| {
            let epsilon_mode = match options.epsilon_mode {
                EpsilonMode::Add => EpsilonMode::Clamp,
                EpsilonMode::Clamp => EpsilonMode::Add,
            };
            Options { epsilon_mode, ..options }
        }]),
    ]
}

/// Deviations of another kind, or of other rows.
fn deviations() -> Vec<Fault> {
    vec![
        Fault::new(
            "biased-for-unbiased-deviation",
            "the deviation divides by G where G - 1 is declared, or the reverse",
        )
        .seen("torch.std is unbiased, numpy.std is not")
        .as_if(&[|options| Options { ddof: 1 - options.ddof, ..options }]),
        Fault::new("divided-by-the-variance", "the square root of the variance is missing")
            .seen("`var` for `std`")
            .made_of([scaled(|r, options| deviation(r, options.ddof).powi(2) + options.epsilon)]),
        Fault::new("not-divided", "the deviation is never divided by")
            .seen("Dr. GRPO where GRPO is declared")
            .as_if(&[|options| Options { scale: Scale::None, ..options }]),
        Fault::new(
            "divided-although-not-declared",
            "divides by the deviation where no scale is declared",
        )
        .seen("GRPO where Dr. GRPO is declared")
        .under("{scale: none}")
        .as_if(&[
            |options| Options { scale: Scale::Std, ..options },
            |options| Options { scale: Scale::Std, ddof: 0, ..options },
            |options| Options { scale: Scale::BatchStd, ..options },
        ]),
        Fault::new(
            "groups-ignored",
            "mean and deviation over the whole batch, as if it were one group",
        )
        .seen("REINFORCE++ normalisation where a group's is declared")
        .on(&[|case, _| case.groups.fill(0)])
        .gives(&[|case, options, dtype| {
            let groups = Array1::zeros(case.groups.len());
            let case = GroupAdvantageCase { groups, ..case.clone() };
            right(&case, &Options { ddof: 0, ..options.clone() }, dtype)
        }]),
        Fault::new(
            "batch-mean-as-baseline",
            "the mean of the whole batch is subtracted, the group's deviation divides",
        )
        .seen("compare Search-R1 9ec2fa9")
        .gives(&[|case, options, _| {
            let everyone = all_scored(case);
            let baseline = mean(&everyone);
            grouped(case, |r| {
                r.iter().map(|x| (x - baseline) / scale_of(r, &everyone, options)).collect()
            })
        }]),
        Fault::new(
            "batch-deviation-for-the-group-s",
            "divides by the deviation of the whole batch where the group's is declared",
        )
        .seen("TRL scale_rewards=\"batch\" where \"group\" is declared")
        .as_if(&[
            |options| Options { scale: Scale::BatchStd, ..options },
            |options| Options { scale: Scale::BatchStd, ddof: 0, ..options },
        ]),
        Fault::new(
            "group-deviation-for-the-batch-s",
            "divides by the deviation of the group where the whole batch's is declared",
        )
        .seen("TRL scale_rewards=\"group\" where \"batch\" is declared")
        .under("{scale: batch-std}")
        .as_if(&[|options| Options { scale: Scale::Std, ..options }]),
        Fault::new(
            "own-reward-in-the-leave-one-out-deviation",
            "the deviation of the whole group where that of the other rows is declared",
        )
        .seen("NeMo-RL's default takes the other rows")
        .under("{scale: loo-std}")
        .as_if(&[|options| Options { scale: Scale::Std, ..options }]),
    ]
}

/// Groups read, or given back, in another order.
fn layouts() -> Vec<Fault> {
    vec![
        Fault::new(
            "groups-assumed-contiguous",
            "reshapes to rows of the first group's size and never reads `groups`",
        )
        .seen("layout assumptions as disputed in trl #5030")
        .on(&[|case, _| {
            let size = members(case)[0].len() as i64;
            case.groups = (0..case.groups.len() as i64).map(|row| row / size).collect();
        }]),
        Fault::new(
            "groups-strided",
            "reshapes the wrong way: rows i, i + K, i + 2K share a baseline",
        )
        .seen("layout assumptions as disputed in trl #5030")
        .under("{layout: contiguous}")
        .on(&[|case, _| {
            let count = members(case).len() as i64;
            case.groups = (0..case.groups.len() as i64).map(|row| row % count).collect();
        }]),
        Fault::new(
            "rows-in-group-order",
            "the advantages come back sorted by group, not in the order of the rows",
        )
        .seen("verl #1440, #1943: outputs left in sorted order")
        .gives(&[|case, options, dtype| {
            let right = right(case, options, dtype);
            let mut groups = members(case);
            groups.sort_by_key(|rows| case.groups[rows[0]]);
            let order = groups.concat();
            order.iter().map(|row| right.advantages[*row]).collect::<Vec<_>>().into()
        }]),
    ]
}

/// Other statistics than mean and deviation.
fn statistics() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "mean - r for r - mean: good completions are pushed down")
            .seen("`mean - r` for `r - mean`: the operands swapped")
            .made_of([changed(|a| -a)]),
        Fault::new("sum-for-mean", "the sum of the group is subtracted for its mean")
            .seen("aggregation slip, compare trlx #509")
            .made_of([by_group(|r, options| {
                let sum: f64 = r.iter().sum();
                r.iter().map(|x| (x - sum) / divisor(r, options)).collect()
            })]),
        Fault::new("median-for-mean", "the median of the group is subtracted for its mean")
            .seen("robust statistics without a word about it")
            .made_of([
                about(|sorted| {
                    let middle = sorted.len() / 2;
                    match sorted.len() % 2 {
                        1 => sorted[middle],
                        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
                    }
                }),
                // torch.median takes the lower of the two in the middle.
                about(|sorted| sorted[(sorted.len() - 1) / 2]),
            ]),
        Fault::new(
            "range-for-deviation",
            "divides by max - min (or maps to 0..1) where the deviation is declared",
        )
        .seen("min-max normalisation in its place")
        .made_of([
            scaled(|r, options| largest(r) - smallest(r) + options.epsilon),
            by_group(|r, options| {
                let width = largest(r) - smallest(r) + options.epsilon;
                r.iter().map(|x| (x - smallest(r)) / width).collect()
            }),
        ]),
        Fault::new("absolute-deviation", "divides by the mean absolute deviation")
            .seen("robust statistics without a word about it")
            .made_of([scaled(|r, options| {
                let mean = mean(r);
                let sum: f64 = r.iter().map(|x| (x - mean).abs()).sum();
                sum / r.len() as f64 + options.epsilon
            })]),
    ]
}

/// The reward itself in its baseline, or not.
fn leave_one_out() -> Vec<Fault> {
    vec![
        Fault::new(
            "own-reward-in-the-baseline",
            "the group mean where the mean of the others is declared",
        )
        .seen("GRPO's baseline where RLOO's is declared")
        .under("{baseline: leave-one-out, scale: none}")
        .as_if(&[|options| Options { baseline: Baseline::Mean, ..options }]),
        Fault::new(
            "own-reward-left-out-of-the-baseline",
            "the mean of the others where the group mean is declared",
        )
        .seen("RLOO's baseline where GRPO's is declared")
        .as_if(&[|options| Options { baseline: Baseline::LeaveOneOut, ..options }]),
        Fault::new(
            "leave-one-out-divided-by-the-group-size",
            "the sum of the others divided by G for G - 1",
        )
        .seen("RLOO ports")
        .under("{baseline: leave-one-out, scale: none}")
        .gives(&[|case, options, _| {
            let everyone = all_scored(case);
            grouped(case, |r| {
                let (sum, count) = (r.iter().sum::<f64>(), r.len() as f64);
                let scale = scale_of(r, &everyone, options);
                r.iter().map(|x| (x - (sum - x) / count) / scale).collect()
            })
        }]),
    ]
}

/// Groups of one row, and groups of equal rewards.
fn lone_and_constant_groups() -> Vec<Fault> {
    vec![
        Fault::new(
            "singleton-keeps-its-reward",
            "a group of one gets its reward where 0 is declared",
        )
        .seen("verl's convention where TRL's is declared")
        .as_if(&[|options| Options { singleton: Singleton::Reward, ..options }]),
        Fault::new("singleton-gets-zero", "a group of one gets 0 where its reward is declared")
            .seen("TRL's convention where verl's is declared")
            .under("{singleton: reward}")
            .as_if(&[|options| Options { singleton: Singleton::Zero, ..options }]),
        Fault::new(
            "constant-group-keeps-its-reward",
            "a group without deviation gets its raw rewards instead of 0",
        )
        .seen("an early return on std = 0")
        .gives(&[|case, options, dtype| {
            let mut output = right(case, options, dtype);
            for rows in members(case).iter().filter(|rows| rows.len() > 1) {
                let rewards: Vec<f64> = rows.iter().map(|row| scored(case, *row)).collect();
                if largest(&rewards) == smallest(&rewards) {
                    rows.iter().for_each(|row| {
                        output.advantages[*row] = scored(case, *row);
                    });
                }
            }
            output
        }]),
        Fault::new("constant-group-gets-one", "a group without deviation gets 1 instead of 0")
            .seen("a mask of zero deviations filled with ones")
            .made_of([by_group(|r, _| {
                let flat = r.len() > 1 && largest(r) == smallest(r);
                let divisor = deviation(r, 1) + 1e-4;
                r.iter().map(|x| if flat { 1.0 } else { (x - mean(r)) / divisor }).collect()
            })]),
    ]
}

/// Rewards of another format, and those without a score.
fn rewards() -> Vec<Fault> {
    vec![
        Fault::new("rewards-truncated-to-integers", "the rewards pass through an integer tensor")
            .seen("dtype slips, compare NeMo-RL #1619")
            .on(&[|case, _| case.rewards.mapv_inplace(f64::trunc)]),
        Fault::new(
            "statistics-in-half-precision",
            "mean and deviation are taken in bf16 (or f16) at f32",
        )
        .seen("compare OpenRLHF #634, #620")
        .made_of([in_half(Dtype::Bf16), in_half(Dtype::F16)]),
        Fault::new(
            "unscored-counted-as-zero",
            "a reward that could not be scored counts as 0 and shifts its siblings",
        )
        .seen("trl #5773, #5775, #5902 (1c7c7f988)")
        .under("{unscored: exclude}")
        .on(&[|case, _| unscored_as_zero(case)])
        .gives(&[|case, options, dtype| {
            let mut zeroed = case.clone();
            unscored_as_zero(&mut zeroed);
            let mut output = right(&zeroed, options, dtype);
            for (advantage, reward) in output.advantages.iter_mut().zip(&case.rewards) {
                *advantage = if reward.is_nan() { 0.0 } else { *advantage };
            }
            output
        }]),
        Fault::new("unscored-spoils-its-group", "one NaN reward makes the whole group NaN")
            .seen("verl, where TRL leaves such rows out")
            .under("{unscored: exclude}")
            .gives(&[|case, options, dtype| {
                let mut output = right(case, options, dtype);
                for rows in members(case) {
                    if rows.iter().any(|row| case.rewards[*row].is_nan()) {
                        rows.iter().for_each(|row| output.advantages[*row] = f64::NAN);
                    }
                }
                output
            }]),
    ]
}

/// What is done to advantages that were right, or to rewards before.
fn afterwards() -> Vec<Fault> {
    vec![
        Fault::new("advantages-clipped", "the advantages are clipped (to ±1, ±2 or ±0.5)")
            .seen("NeMo-RL clips on request")
            .made_of([
                changed(|a| a.clamp(-1.0, 1.0)),
                changed(|a| a.clamp(-2.0, 2.0)),
                changed(|a| a.clamp(-0.5, 0.5)),
            ]),
        Fault::new(
            "negative-advantages-dropped",
            "only completions better than the mean count: max(A, 0)",
        )
        .seen("rejection sampling in disguise")
        .made_of([changed(|a| a.clamp(0.0, f64::INFINITY)), changed(f64::abs)]),
        Fault::new(
            "whitened-again-over-the-batch",
            "the advantages are normalised once more over the whole batch",
        )
        .seen("TRL RLOO `normalize_advantages`, verl REINFORCE++-baseline")
        .gives(&[|case, options, dtype| {
            let advantages = right(case, options, dtype).advantages;
            let divisor = deviation(advantages.as_slice().unwrap_or(&[]), 1);
            let divisor = if divisor.is_nan() { 1.0 } else { divisor + 1e-8 };
            let mean = advantages.mean().unwrap_or(0.0);
            advantages.mapv(|a| (a - mean) / divisor).into()
        }]),
        Fault::new(
            "small-deviations-zeroed",
            "a group whose deviation is small (below 0.1, 0.01 or 1e-3) gets 0",
        )
        .seen("a filter for groups without signal with too wide a threshold")
        .made_of([0.01, 0.1, 1e-3].map(silenced)),
        Fault::new("ranks-for-rewards", "the ranks of the rewards are normalised, not the rewards")
            .seen("fitness shaping from evolution strategies")
            .made_of([by_group(|r, options| {
                let rank = |x: f64| r.iter().filter(|other| **other < x).count() as f64;
                let ranks: Vec<f64> = r.iter().map(|x| rank(*x)).collect();
                let mean = mean(&ranks);
                let divisor = divisor(&ranks, options);
                ranks.iter().map(|rank| (rank - mean) / divisor).collect()
            })]),
        Fault::new(
            "last-row-left-out-of-the-statistics",
            "the mean misses the last row of each group",
        )
        .seen("off by one, compare trl #2332")
        .made_of([by_group(|r, options| {
            let seen = if r.len() > 1 { &r[..r.len() - 1] } else { r };
            let mean = mean(seen);
            r.iter().map(|x| (x - mean) / divisor(r, options)).collect()
        })]),
    ]
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
