//! The reference implementation of `whiten`, as a trainer would write it.

use std::iter::Sum;

use ndarray::Array2;
use num_traits::Float;

use super::{EpsilonMode, Options, WhitenCase, WhitenOutput, is_few, sets};
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::value::place::Dtype;

/// The whitened values, computed in the arithmetic of the dtype.
pub(super) fn whitened(case: &WhitenCase, options: &Options, dtype: Dtype) -> WhitenOutput {
    match dtype.arithmetic() {
        Dtype::F64 => in_arithmetic::<f64>(case, options),
        _ => in_arithmetic::<f32>(case, options),
    }
}

/// Values are taken relative to the first of their set before they are averaged: so equal ones
/// have mean and variance 0 exactly, and not a residue of rounding.
fn in_arithmetic<F: Float + Sum>(case: &WhitenCase, options: &Options) -> WhitenOutput {
    let number = |x: f64| F::from(x).expect("every float format holds any f64, rounded");
    let wide = |x: F| x.to_f64().expect("every float is an f64");
    let mut whitened = Array2::zeros(case.values.dim());
    for set in sets(case, options) {
        if is_few(set.len(), options) {
            for at in set {
                whitened[at] = match options.empty_mask {
                    EmptyMask::Zero if options.shift_mean => 0.0,
                    EmptyMask::Zero => case.values[at],
                    _ => f64::NAN,
                };
            }
            assert!(options.empty_mask != EmptyMask::Refuse, "too few tokens for a deviation");
            continue;
        }
        let origin = number(case.values[set[0]]);
        let distances: Vec<F> = set.iter().map(|at| number(case.values[*at]) - origin).collect();
        let count = number(set.len() as f64);
        let mean = distances.iter().copied().sum::<F>() / count;
        let squares = distances.iter().map(|d| (*d - mean).powi(2)).sum::<F>();
        let variance = squares / (count - number(f64::from(options.ddof)));
        let epsilon = number(options.epsilon);
        let divisor = match options.epsilon_mode {
            EpsilonMode::Add => (variance + epsilon).sqrt(),
            EpsilonMode::Clamp => variance.max(epsilon).sqrt(),
        };
        let kept = if options.shift_mean { F::zero() } else { origin + mean };
        for (at, distance) in set.into_iter().zip(distances) {
            whitened[at] = wide((distance - mean) / divisor + kept);
        }
    }
    whitened.into()
}
