//! Faults of the division: rows that it leaves out, ε, and other deviations.

use ndarray::Array1;

use super::super::{Baseline, EpsilonMode, GroupAdvantageCase, Options, Scale, Singleton, members};
use super::{
    Fault, all_scored, by_group, deviation, divisor, grouped, in_f32, mean, right, scale_of,
    scaled, scored,
};

/// Rows that are not normalised, or as others are.
pub(super) fn groups() -> Vec<Fault> {
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
pub(super) fn epsilon() -> Vec<Fault> {
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
pub(super) fn deviations() -> Vec<Fault> {
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
