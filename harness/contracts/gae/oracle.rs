//! The definition of `gae` in plain f64: every advantage is a discounted sum of TD errors.

use ndarray::Array2;

use super::{GaeCase, Options};
use shakedown_core::numeric::conventions::{EmptyMask, MaskedTokens};
use shakedown_core::numeric::tolerance::outside;
use shakedown_core::numeric::tolerance::{Expected, Number, SAFETY, discounted, summed};
use shakedown_core::value::place::Dtype;

/// The constant inside the root of the deviation.
pub(super) const EPSILON: f64 = 1e-8;

/// What the definition gives.
pub(super) fn gae(case: &GaeCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let masked = outside(options.masked_output);
    let raw = advantages(case, options);
    let mut returns = Array2::from_elem(case.rewards.dim(), masked);
    let mut advantages = returns.clone();
    let kept = || case.mask.indexed_iter().filter(|(_, kept)| **kept).map(|(at, _)| at);
    for at in kept() {
        let (raw, value) = (raw[at], case.values[at]);
        returns[at] = Number::new(raw.value + value, raw.scale + value.abs());
        advantages[at] = raw;
    }
    let mut terms = 1;
    if options.too_few(case) {
        // A mean of nothing, multiplied by the mask: even masked positions may be NaN.
        let undefined = options.empty_mask == EmptyMask::Nan;
        advantages.fill(if undefined { Number::ANYTHING } else { masked });
        for at in kept() {
            advantages[at] = if undefined { Number::NAN } else { Number::new(0.0, 0.0) };
        }
    } else if options.whiten {
        let raw: Vec<Number> = kept().map(|at| raw[at]).collect();
        terms = raw.len();
        for (at, number) in kept().zip(whitened(&raw, dtype)) {
            advantages[at] = number;
        }
    }
    let expected = |field, numbers: Array2<Number>, terms| Expected {
        field,
        numbers: numbers.into_dyn(),
        terms,
    };
    vec![expected("advantages", advantages, terms), expected("returns", returns, 1)]
}

/// The advantages of the unmasked tokens before whitening; 0 at the others.
///
/// A TD error that is d steps ahead has passed through d products and sums on its way, and its
/// coefficient through as many: its part of the scale is 1 + 2d times its magnitude.
fn advantages(case: &GaeCase, options: &Options) -> Array2<Number> {
    let (rows, tokens) = case.rewards.dim();
    let mut numbers = Array2::from_elem((rows, tokens), Number::new(0.0, 0.0));
    let passes = options.masked == MaskedTokens::Zero;
    for row in 0..rows {
        let kept = |token: &usize| case.mask[[row, *token]];
        let steps: Vec<usize> = (0..tokens).filter(|token| kept(token) || passes).collect();
        let at = |array: &Array2<f64>, step: usize| match steps.get(step) {
            Some(token) if kept(token) => array[[row, *token]],
            _ => 0.0,
        };
        let errors: Vec<(f64, f64)> = (0..steps.len())
            .map(|step| {
                let (reward, value) = (at(&case.rewards, step), at(&case.values, step));
                let next = options.gamma * at(&case.values, step + 1);
                (reward + next - value, reward.abs() + next.abs() + value.abs())
            })
            .collect();
        let factor = options.gamma * options.lam;
        for (token, sum) in steps.iter().zip(discounted(&errors, factor, 2.0)) {
            if kept(token) {
                numbers[[row, *token]] = sum;
            }
        }
    }
    numbers
}

/// Two or more numbers less their mean, over √(var + ε) with ddof 1.
///
/// The deviation may be taken in one pass, as Σx² − n·mean², which errs by the size of the squares
/// before they cancel. Where the deviation is small enough for its own error to matter, quotients
/// are bounded with the smallest divisor that the error leaves.
pub(super) fn whitened(raw: &[Number], dtype: Dtype) -> Vec<Number> {
    let count = raw.len() as f64;
    let chain = summed(raw.len());
    let mean = raw.iter().map(|x| x.value).sum::<f64>() / count;
    let magnitude = raw.iter().map(|x| x.value.abs() * chain + x.scale).sum::<f64>() / count;
    let scales = raw.iter().map(|x| x.scale + x.value.abs() + mean.abs() + magnitude);
    let scales: Vec<f64> = scales.collect();

    let per_degree = |sum: f64| sum / (count - 1.0);
    let variance = per_degree(raw.iter().map(|x| (x.value - mean).powi(2)).sum());
    let squares = chain * per_degree(raw.iter().map(|x| x.value.powi(2)).sum());
    let spread =
        per_degree(scales.iter().map(|scale| scale.powi(2)).sum()).sqrt() + chain * variance.sqrt();

    let unit = SAFETY * dtype.arithmetic().unit_roundoff() * (1.0 + count.log2());
    let least = (variance.sqrt() - unit * spread).max(0.0).powi(2) - unit * squares;
    let least = (least.max(0.0) + EPSILON).sqrt();
    let divisor = (variance + EPSILON).sqrt();
    let divisor_scale = spread + squares / (2.0 * least);
    raw.iter()
        .zip(scales)
        .map(|(x, scale)| {
            let value = (x.value - mean) / divisor;
            Number::new(value, (scale + value.abs() * divisor_scale) / least + value.abs())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, arr2};

    use super::*;

    fn values(case: &GaeCase, options: &Options) -> [Vec<f64>; 2] {
        let expected = gae(case, options, Dtype::F64);
        [0, 1].map(|field: usize| expected[field].numbers.iter().map(|x| x.value).collect())
    }

    fn all_close(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-13)
    }

    /// One row of `n` tokens with constant values and one reward at the end.
    fn outcome(reward: f64, value: f64, n: usize) -> GaeCase {
        let mut rewards = Array2::zeros((1, n));
        rewards[[0, n - 1]] = reward;
        GaeCase {
            rewards,
            values: Array2::from_elem((1, n), value),
            mask: Array2::from_elem((1, n), true),
        }
    }

    #[test]
    fn one_final_reward_decays_with_gamma_and_lambda() {
        let options = Options { gamma: 0.9, lam: 0.8, ..Options::default() };
        let [advantages, returns] = values(&outcome(3.0, 0.0, 5), &options);
        let expected: Vec<f64> = (0..5).map(|t| 3.0 * 0.72_f64.powi(4 - t)).collect();
        assert!(all_close(&advantages, &expected) && all_close(&returns, &expected));
    }

    #[test]
    fn constant_values_miss_the_final_reward_by_a_constant() {
        let options = Options { lam: 0.5, ..Options::default() };
        let [advantages, _] = values(&outcome(3.0, 1.0, 4), &options);
        assert!(all_close(&advantages, &[0.25, 0.5, 1.0, 2.0]), "{advantages:?}");
    }

    #[test]
    fn exact_values_leave_no_advantage() {
        let gamma = 0.9_f64;
        let mut case = outcome(2.0, 0.0, 6);
        case.values = Array2::from_shape_fn((1, 6), |(_, t)| 2.0 * gamma.powi(5 - t as i32));
        let [advantages, returns] = values(&case, &Options { gamma, ..Options::default() });
        assert!(all_close(&advantages, &[0.0; 6]));
        assert!(all_close(&returns, case.values.as_slice().unwrap()));
    }

    #[test]
    fn a_gap_is_carried_over_or_costs_a_step_and_the_next_value() {
        let case = GaeCase {
            rewards: arr2(&[[0.0, 7.0, 1.0]]),
            values: arr2(&[[4.0, 7.0, 2.0]]),
            mask: arr2(&[[true, false, true]]),
        };
        let options = Options { gamma: 0.5, lam: 0.5, holes: true, ..Options::default() };
        // 0 + 0.5·2 − 4 + 0.25·(1 − 2)
        let [advantages, returns] = values(&case, &options);
        assert!(all_close(&advantages, &[-3.25, 0.0, -1.0]), "{advantages:?}");
        assert!(all_close(&returns, &[0.75, 0.0, 1.0]), "{returns:?}");
        // 0 + 0.5·0 − 4 + 0.25·(0 + 0.5·2 − 0) + 0.0625·(1 − 2)
        let options = Options { masked: MaskedTokens::Zero, ..options };
        let [advantages, _] = values(&case, &options);
        assert!(all_close(&advantages, &[-3.8125, 0.0, -1.0]), "{advantages:?}");
    }

    #[test]
    fn two_whitened_advantages_are_a_root_of_one_half_apart_from_zero() {
        let case = GaeCase {
            rewards: arr2(&[[0.0], [5.0]]),
            values: Array2::zeros((2, 1)),
            mask: Array2::from_elem((2, 1), true),
        };
        let options = Options { whiten: true, ..Options::default() };
        let [advantages, returns] = values(&case, &options);
        let root = 0.5_f64.sqrt();
        assert!((advantages[0] + root).abs() < 1e-9 && (advantages[1] - root).abs() < 1e-9);
        assert_eq!(returns, [0.0, 5.0]);
    }

    #[test]
    fn one_token_whitens_to_what_is_declared() {
        let case = outcome(3.0, 1.0, 1);
        let of = |empty_mask| {
            values(&case, &Options { whiten: true, empty_mask, ..Options::default() })[0][0]
        };
        assert_eq!(of(EmptyMask::Zero), 0.0);
        assert!(of(EmptyMask::Nan).is_nan());
    }
}
