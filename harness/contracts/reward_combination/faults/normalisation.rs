//! Faults of what is done to a function inside its group.

use super::super::{Normalise, Options, Singleton};
use super::{
    Fault, by_group, deviation, divisor, is_constant, lone, mean, over, right, standard, summed,
    with,
};

/// Other sets of numbers than one function in one group.
pub(super) fn groups() -> Vec<Fault> {
    vec![
        Fault::new("not-normalised", "the raw rewards are added where GDPO is declared")
            .seen("an option without effect")
            .under("{normalise: group}")
            .as_if(&[|options| Options { normalise: Normalise::None, ..options }]),
        Fault::new("normalised", "each function is normalised where nobody asked for it")
            .seen("GDPO (`normalize_then_sum`) where a plain sum is declared")
            .as_if(&[|options| Options { normalise: Normalise::Group, ..options }]),
        Fault::new(
            "summed-then-normalised",
            "the weighed sum is normalised, so that the function of the largest scale decides",
        )
        .seen("GRPO where GDPO is declared: TRL's `sum_then_normalize`")
        .under("{normalise: group}")
        .gives(&[|case, options, dtype| {
            let raw = Options { normalise: Normalise::None, ..options.clone() };
            let mut output = right(case, &raw, dtype);
            for rows in super::members(case) {
                let has_sum = |row: &usize| !output.combined[*row].is_nan();
                let rows: Vec<usize> = rows.into_iter().filter(has_sum).collect();
                let sums: Vec<f64> = rows.iter().map(|row| output.combined[*row]).collect();
                if rows.is_empty() {
                    continue;
                }
                for (row, z) in rows.iter().zip(standard(&sums, options)) {
                    output.combined[*row] = z;
                }
            }
            output
        }]),
        Fault::new(
            "normalised-over-the-batch",
            "each function is normalised over all rows, as if they were one group",
        )
        .seen("`groups` is never read; compare Search-R1 9ec2fa9")
        .under("{normalise: group}")
        .on(&[|case, _| case.groups.fill(0)]),
        Fault::new(
            "functions-normalised-together",
            "one mean and one deviation for all functions of a group",
        )
        .seen("`mean()` for `mean(dim=0)` over a matrix of rewards")
        .under("{normalise: group}")
        .gives(&[|case, options, dtype| {
            let mut scores = case.rewards.clone();
            for rows in super::members(case) {
                let all: Vec<f64> = rows
                    .iter()
                    .flat_map(|row| case.rewards.row(*row))
                    .copied()
                    .filter(|reward| !reward.is_nan())
                    .collect();
                if all.is_empty() || is_constant(&all) {
                    rows.iter().for_each(|row| scores.row_mut(*row).fill(0.0));
                    continue;
                }
                let (middle, divisor) = (mean(&all), divisor(&all, options));
                for row in rows {
                    scores.row_mut(row).mapv_inplace(|x| (x - middle) / divisor);
                }
            }
            with(case, options, dtype, summed(case, &scores, options))
        }]),
        Fault::new(
            "normalised-across-the-functions",
            "each row is normalised over its functions, not each function over its rows",
        )
        .seen("`dim=1` for `dim=0`")
        .under("{normalise: group}")
        .gives(&[|case, options, dtype| {
            let mut scores = case.rewards.clone();
            for mut row in scores.rows_mut() {
                let there: Vec<f64> = row.iter().copied().filter(|r| !r.is_nan()).collect();
                if there.len() < 2 || is_constant(&there) {
                    row.fill(0.0);
                    continue;
                }
                let (middle, divisor) = (mean(&there), divisor(&there, options));
                row.mapv_inplace(|x| (x - middle) / divisor);
            }
            with(case, options, dtype, summed(case, &scores, options))
        }]),
    ]
}

/// Other means, deviations and constants.
pub(super) fn deviations() -> Vec<Fault> {
    vec![
        Fault::new("biased-deviation", "ddof 0 where 1 is declared: √(G/(G-1)) too large")
            .seen("`numpy.std` for `torch.std`, compare verl #1527")
            .under("{normalise: group}")
            .as_if(&[|options| Options { ddof: 0, ..options }]),
        Fault::new("unbiased-deviation", "ddof 1 where 0 is declared")
            .seen("`torch.std` for `numpy.std`")
            .under("{normalise: group, ddof: 0}")
            .as_if(&[|options| Options { ddof: 1, ..options }]),
        Fault::new("not-centred", "r/(σ + ε): the mean is not taken off")
            .seen("rewards scaled as PPO2 scales returns, without their mean")
            .under("{normalise: group}")
            .made_of([by_group(|r, options| match r.len() {
                1 => lone(r, options),
                _ => r.iter().map(|x| x / divisor(r, options)).collect(),
            })]),
        Fault::new("centred-only", "the mean is taken off, and nothing divided")
            .seen("Dr. GRPO's convention where GDPO's is declared")
            .under("{normalise: group}")
            .as_if(&[|options| Options { divide: false, ..options }]),
        Fault::new("divided-besides", "divided by σ + ε where only the mean is to be taken off")
            .seen("GDPO's convention where Dr. GRPO's is declared")
            .under("{normalise: group, divide: false}")
            .as_if(&[|options| Options { divide: true, ..options }]),
        Fault::new("divided-by-the-variance", "(r - μ)/(σ² + ε): the root is missing")
            .seen("`var` for `std`")
            .under("{normalise: group}")
            .made_of([over(|r, options| deviation(r, options.ddof).powi(2) + options.epsilon)]),
        Fault::new("mean-over-std-precedence", "r - μ/(σ + ε) for (r - μ)/(σ + ε)")
            .seen("prime-rl #390")
            .under("{normalise: group}")
            .made_of([by_group(|r, options| match r.len() {
                1 => lone(r, options),
                _ => r.iter().map(|x| x - mean(r) / divisor(r, options)).collect(),
            })]),
        Fault::new("epsilon-too-large", "ε is 1, 0.1 or 0.01: small scores lose their voice")
            .seen("an ε meant for rewards of size 1; compare slime's 1e-6 with TRL's 1e-4")
            .under("{normalise: group}")
            .as_if(&[
                |options| Options { epsilon: 1.0, ..options },
                |options| Options { epsilon: 0.1, ..options },
                |options| Options { epsilon: 0.01, ..options },
            ]),
        Fault::new("epsilon-inside-the-root", "√(σ² + ε) for σ + ε")
            .seen("two conventions, both honest, one declared: verl has it at the end only")
            .under("{normalise: group}")
            .made_of([over(|r, options| {
                (deviation(r, options.ddof).powi(2) + options.epsilon).sqrt()
            })]),
        Fault::new("epsilon-as-a-floor", "max(σ, ε) for σ + ε")
            .seen("`clamp(min=eps)`, as some trainers guard a division")
            .under("{normalise: group, epsilon: 0.01}")
            .made_of([over(|r, options| deviation(r, options.ddof).max(options.epsilon))]),
        Fault::new("range-for-deviation", "divided by the largest score less the smallest")
            .seen("min-max scaling for standardising")
            .under("{normalise: group}")
            .made_of([over(|r, options| {
                let largest = r.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                largest - r.iter().copied().fold(f64::INFINITY, f64::min) + options.epsilon
            })]),
        Fault::new("median-for-mean", "the median is taken off for the mean")
            .seen("`median` beside `mean`; torch takes the lower of two middle ones")
            .under("{normalise: group}")
            .made_of([by_group(|r, options| {
                let mut sorted = r.to_vec();
                sorted.sort_by(f64::total_cmp);
                let middle = sorted[(r.len() - 1) / 2];
                match r.len() {
                    1 => lone(r, options),
                    _ if is_constant(r) => vec![0.0; r.len()],
                    _ => r.iter().map(|x| (x - middle) / divisor(r, options)).collect(),
                }
            })]),
        Fault::new("leave-one-out-mean", "the mean of the other rows is taken off")
            .seen("NeMo-RL's `use_leave_one_out_baseline`, where the mean of all is declared")
            .under("{normalise: group}")
            .made_of([by_group(|r, options| {
                let others = (r.len() as f64) / (r.len() as f64 - 1.0);
                match r.len() {
                    1 => lone(r, options),
                    _ => standard(r, options).into_iter().map(|z| z * others).collect(),
                }
            })]),
        Fault::new(
            "deviation-of-the-batch",
            "the mean is that of the group, the deviation that of all rows",
        )
        .seen("TRL's `scale_rewards: batch` where the group's deviation is declared")
        .under("{normalise: group}")
        .gives(&[|case, options, dtype| {
            let mut scores = super::normalised(case, |r| match r.len() {
                1 => lone(r, options),
                _ => r.iter().map(|x| x - mean(r)).collect(),
            });
            let everyone: Vec<usize> = (0..case.groups.len()).collect();
            for (function, mut column) in scores.columns_mut().into_iter().enumerate() {
                let there = super::scored(case, &everyone, function);
                let all: Vec<f64> =
                    there.iter().map(|row| case.rewards[[*row, function]]).collect();
                let divisor = if all.len() < 2 { 1.0 } else { divisor(&all, options) };
                column.mapv_inplace(|x| if x == 0.0 { 0.0 } else { x / divisor });
            }
            with(case, options, dtype, summed(case, &scores, options))
        }]),
        Fault::new(
            "deviation-of-all-functions",
            "each function has its own mean, and all of a group have one deviation",
        )
        .seen("`std()` for `std(dim=0)` over a matrix of rewards")
        .under("{normalise: group}")
        .gives(&[|case, options, dtype| {
            let mut scores = super::normalised(case, |r| match r.len() {
                1 => lone(r, options),
                _ => r.iter().map(|x| x - mean(r)).collect(),
            });
            for rows in super::members(case).into_iter().filter(|rows| rows.len() > 1) {
                let all = rows.iter().flat_map(|row| case.rewards.row(*row)).copied();
                let all: Vec<f64> = all.filter(|reward| !reward.is_nan()).collect();
                let divisor = if all.len() < 2 { 1.0 } else { divisor(&all, options) };
                for row in rows {
                    scores.row_mut(row).mapv_inplace(|x| if x == 0.0 { 0.0 } else { x / divisor });
                }
            }
            with(case, options, dtype, summed(case, &scores, options))
        }]),
    ]
}

/// Functions that scored one row of a group, or all rows alike.
pub(super) fn lone_and_constant() -> Vec<Fault> {
    vec![
        Fault::new("single-row-is-nan", "the deviation of one scored row is 0/0")
            .seen("SB3 #1028, ROLL #475: ddof 1 over one element")
            .under("{normalise: group}")
            .made_of([
                by_group(|r, options| match r.len() {
                    1 => vec![f64::NAN],
                    _ => standard(r, options),
                }),
                super::by_size(|r, size, options| match (r.len(), size) {
                    (1, 2..) => vec![f64::NAN],
                    _ => standard(r, options),
                }),
            ]),
        Fault::new(
            "single-row-keeps-its-reward",
            "a function that scored one row keeps its score where 0 is declared",
        )
        .seen("verl's convention where TRL's is declared")
        .under("{normalise: group}")
        .as_if(&[|options| Options { singleton: Singleton::Reward, ..options }]),
        Fault::new(
            "single-row-gets-zero",
            "a function that scored one row is 0 where its score is declared",
        )
        .seen("TRL's convention where verl's is declared")
        .under("{normalise: group, singleton: reward}")
        .as_if(&[|options| Options { singleton: Singleton::Zero, ..options }]),
        Fault::new(
            "constant-function-keeps-its-reward",
            "a function without deviation in a group adds its raw score instead of 0",
        )
        .seen("an early return on std = 0")
        .under("{normalise: group}")
        .made_of([by_group(|r, options| match r.len() {
            1 => lone(r, options),
            _ if is_constant(r) => r.to_vec(),
            _ => standard(r, options),
        })]),
        Fault::new("epsilon-missing", "a function without deviation is 0/0: NaN")
            .seen("AReaL and others: no ε; compare SB3 #1028")
            .under("{normalise: group}")
            .made_of([by_group(|r, options| match r.len() {
                1 => lone(r, options),
                _ if is_constant(r) => vec![f64::NAN; r.len()],
                _ => standard(r, options),
            })]),
        Fault::new(
            "residue-of-a-rounded-mean",
            "the rounded mean of equal scores is not that score, and ε is as small as the rest",
        )
        .seen("ε = 1e-8 at f32: 0.81 three times")
        .under("{normalise: group, epsilon: 1.0e-8}")
        .made_of([by_group(|r, options| match r.len() {
            1 => lone(r, options),
            _ => in_f32(r, options),
        })]),
    ]
}

/// (r - mean)/(σ + ε), all in f32.
fn in_f32(rewards: &[f64], options: &Options) -> Vec<f64> {
    let r: Vec<f32> = rewards.iter().map(|x| *x as f32).collect();
    let count = r.len() as f32;
    let mean = r.iter().sum::<f32>() / count;
    let squares = r.iter().map(|x| (x - mean).powi(2)).sum::<f32>();
    let std = (squares / (count - f32::from(options.ddof))).sqrt();
    r.iter().map(|x| f64::from((x - mean) / (std + options.epsilon as f32))).collect()
}
