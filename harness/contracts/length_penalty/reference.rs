//! The reference implementation of `length-penalty`, as a trainer would write it.

use std::f64::consts::PI;

use ndarray::Array1;

use super::{LengthPenaltyCase, Options, Shape};
use shakedown_core::value::place::Dtype;

/// The penalties, computed in the arithmetic of the dtype.
pub(super) fn length_penalty(
    case: &LengthPenaltyCase,
    options: &Options,
    dtype: Dtype,
) -> Array1<f64> {
    let f = |x: f64| dtype.arithmetic().round(x);
    let [limit, buffer] = [options.max_length, options.buffer].map(|x| f(x as f64));
    let [min, max, factor] = [options.min, options.max, options.factor].map(f);
    case.lengths.mapv(|length| {
        let length = f(length as f64);
        let line = || f(f(f(limit - buffer) - length) / buffer).min(0.0);
        let penalty = match options.shape {
            Shape::Step => -f64::from(length > limit),
            Shape::LinearOverlong if options.buffer == 0 => -f64::from(length > limit),
            Shape::LinearOverlong => line().max(-1.0),
            Shape::LinearUnbounded => line(),
            Shape::Cosine => {
                let share = f(length / limit).min(1.0);
                let cosine = f(f(f(PI) * share).cos());
                f(min + f(f(0.5 * f(max - min)) * f(1.0 + cosine)))
            }
        };
        f(penalty * factor)
    })
}
