//! Faults of some rewards and groups only, and of what comes before and after.

use super::super::{Options, Singleton, members};
use super::{
    Fault, by_group, changed, deviation, divisor, in_half, largest, mean, right, scored, silenced,
    smallest, unscored_as_zero,
};
use shakedown_core::value::place::Dtype;

/// Groups of one row, and groups of equal rewards.
pub(super) fn lone_and_constant_groups() -> Vec<Fault> {
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
pub(super) fn rewards() -> Vec<Fault> {
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
pub(super) fn afterwards() -> Vec<Fault> {
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
