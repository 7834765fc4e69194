//! The definition of `length-penalty` in plain f64.

use std::f64::consts::PI;

use super::{LengthPenaltyCase, Options, Shape};
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};

/// What the definition gives.
pub(super) fn length_penalty(case: &LengthPenaltyCase, options: &Options) -> Vec<Expected> {
    let numbers = case.lengths.mapv(|length| penalty(length, options));
    vec![Expected { field: "rewards", numbers: numbers.into_dyn(), terms: 1 }]
}

/// The penalty of one completion.
pub(super) fn penalty(length: i64, options: &Options) -> Number {
    let Options { shape, max_length, buffer, min, max, factor, .. } = *options;
    let knee = max_length - buffer;
    // Lengths are integers, so what a line cancels is exact; a quotient of the limit that is
    // subtracted from one of the length errs by the size of both.
    let line = || Scaled {
        value: (knee - length) as f64 / buffer as f64,
        scale: (length + knee) as f64 / buffer as f64,
    };
    let penalty = match shape {
        Shape::Step if length <= max_length => Scaled::exact(0.0),
        Shape::Step => Scaled::exact(-1.0),
        Shape::LinearOverlong | Shape::LinearUnbounded if length <= knee => Scaled::exact(0.0),
        Shape::LinearOverlong if length > max_length => Scaled::exact(-1.0),
        Shape::LinearOverlong | Shape::LinearUnbounded => line(),
        Shape::Cosine => {
            let share = Scaled::rounded((length as f64 / max_length as f64).min(1.0));
            let half = (Scaled::rounded(max) - Scaled::rounded(min)) * 0.5;
            (Scaled::exact(1.0) + (share * PI).cos()) * half + Scaled::rounded(min)
        }
    };
    (penalty * factor).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[i64], options: &Options) -> Vec<f64> {
        lengths.iter().map(|length| penalty(*length, options).value).collect()
    }

    fn with(shape: Shape) -> Options {
        Options { shape, max_length: 100, buffer: 20, ..Options::default() }
    }

    #[test]
    fn a_line_falls_from_the_first_knee_to_the_second() {
        let overlong = with(Shape::LinearOverlong);
        assert_eq!(
            of(&[0, 80, 81, 90, 100, 101, 120], &overlong),
            [0.0, 0.0, -0.05, -0.5, -1.0, -1.0, -1.0]
        );
        assert_eq!(of(&[80, 90, 100, 120], &with(Shape::LinearUnbounded)), [0.0, -0.5, -1.0, -2.0]);
        let halved = Options { factor: 0.5, ..overlong };
        assert_eq!(of(&[90, 101], &halved), [-0.25, -0.5]);
    }

    #[test]
    fn without_a_buffer_the_line_is_a_step() {
        let sudden = Options { buffer: 0, ..with(Shape::LinearOverlong) };
        assert_eq!(of(&[0, 99, 100, 101], &sudden), [0.0, 0.0, 0.0, -1.0]);
        assert_eq!(of(&[0, 99, 100, 101], &with(Shape::Step)), [0.0, 0.0, 0.0, -1.0]);
        let whole = Options { buffer: 100, ..with(Shape::LinearOverlong) };
        assert_eq!(of(&[0, 50, 100], &whole), [0.0, -0.5, -1.0]);
    }

    #[test]
    fn a_cosine_falls_from_max_to_min_and_is_half_way_at_half_the_limit() {
        let found = of(&[0, 50, 100, 150], &with(Shape::Cosine));
        for (found, expected) in found.iter().zip([1.0, 0.75, 0.5, 0.5]) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
        let swapped = Options { min: -0.5, max: -1.0, ..with(Shape::Cosine) };
        assert_eq!(of(&[0, 100], &swapped), [-1.0, -0.5]);
    }
}
