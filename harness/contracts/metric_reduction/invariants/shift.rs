//! Values that are all larger by as much move the mean, and not the deviation.
//!
//! ### Claim
//! Values + c move mean, minimum and maximum by c, and leave the deviation as it is.
//!
//! ### Why it matters
//! Lengths of 4 000 tokens with a spread of 2 are an ordinary step. The mean of their squares less
//! the square of their mean is nothing but rounding in f32; a second pass, or f64, loses nothing.
//!
//! ### Does not hold for
//! `unit: row-sum`, in which rows of different length move by different numbers; values that count
//! as 0 because they are NaN.
//!
//! ### Bugs it has caught
//! Variances made of sums and squares that went over the ranks together. NeMo-RL #1619: the share
//! of ones for the mean.
//!
//! ### Example
//! ```diff
//! -    squares = numbers.square().sum() - numbers.sum().square() / len(numbers)
//! +    centred = numbers - numbers[0]  # equal numbers leave no rounding error
//! +    squares = (centred - centred.mean()).square().sum()
//! ```

use super::{related, with_scores};
use crate::metric_reduction::{
    MetricReduction, MetricReductionCase, Options, Unit, count, counted,
};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::Aggregation,
    &[
        "variance-of-squares",
        "counts-ones",
        "moving-average-from-zero",
        "pads-among-the-extremes",
        "pads-in-the-deviation",
        "zeros-left-out",
    ],
    check,
)
.under(|options| options.unit != Unit::RowSum);

/// How far values are moved: little, and to where their spread is small beside them.
pub(super) const SHIFTS: [f64; 5] = [1.0, -2.0, 100.0, 4000.0, -1000.0];

/// The case with every value that counts larger by as much.
pub(super) fn shifted(
    case: &MetricReductionCase,
    options: &Options,
    by: f64,
) -> MetricReductionCase {
    let mut shifted = case.clone();
    for part in &mut shifted.shards {
        let counted = counted(part, options);
        part.values.zip_mut_with(&counted, |value, counted| {
            *value += if *counted { by } else { 0.0 };
        });
    }
    shifted
}

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_scores(probe)?;
    let by = *probe.pick.one(&SHIFTS);
    let other = shifted(probe.case, probe.options, by);
    let count = count(probe.case, probe.options) as f64;
    let what = format!("with values larger by {by}");
    related(probe, &other, &what, |name, x| match name {
        "mean" | "min" | "max" => Some(x + by),
        "sum" => Some(x + by * count),
        "std" | "count" => Some(x),
        _ => None,
    })
}
