//! The definition of `kl-estimate` in plain f64, with the scale of every number.

use ndarray::Array2;

use super::{Estimator, Gradient, KlEstimateCase, Options};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// The estimate at one log-ratio, before its clamp.
fn estimate(estimator: Estimator, d: Scaled) -> Scaled {
    match estimator {
        Estimator::K1 => d,
        Estimator::K2 => d * 0.5 * d,
        Estimator::K3 => (-d).exp_m1() + d,
        Estimator::Abs => d.abs(),
    }
}

/// Its derivative.
fn slope(estimator: Estimator, d: Scaled) -> Scaled {
    match estimator {
        Estimator::K1 => Scaled::exact(1.0),
        Estimator::K2 => d,
        Estimator::K3 => -(-d).exp_m1(),
        Estimator::Abs if d.value == 0.0 => Scaled::exact(0.0),
        Estimator::Abs => Scaled::exact(d.value.signum()),
    }
}

/// The value of the estimate.
pub(super) fn value(estimator: Estimator, d: f64) -> f64 {
    estimate(estimator, Scaled::exact(d)).value
}

/// The log-ratio after its own clamp.
pub(super) fn clamped(options: &Options, d: f64) -> f64 {
    options.log_ratio_clamp.map_or(d, |c| d.clamp(-c, c))
}

/// One token: its estimate, with the number that is clamped to make it.
struct Token {
    d: f64,
    inner: Scaled,
    free: Scaled,
    value: Scaled,
    /// Whether rounding decides if the log-ratio or the result is clamped.
    undecided: bool,
    /// Whether either is.
    stopped: bool,
}

impl Token {
    fn of(log_prob: f64, reference: f64, options: &Options, dtype: Dtype) -> Token {
        let u = dtype.arithmetic().unit_roundoff();
        let d = log_prob - reference;
        let inner = Scaled::rounded(clamped(options, d));
        let free = estimate(options.estimator, inner);
        let (mut undecided, mut stopped, mut result) = (false, false, free);
        if let Some(c) = options.log_ratio_clamp {
            undecided |= (d.abs() - c).abs() <= 8.0 * u * (d.abs() + c);
            stopped |= d.abs() > c;
        }
        for (bound, beyond) in bounds(options).into_iter().flatten() {
            let margin = 16.0 * u * (free.scale + bound.abs());
            let excess = beyond * (free.value - bound);
            undecided |= excess.abs() <= margin;
            if excess > 0.0 {
                stopped = true;
                let open = if excess <= margin { free.scale } else { 0.0 };
                result = Scaled { value: bound, scale: bound.abs() + open };
            }
        }
        if options.gradient == Gradient::K2 && options.estimator != Estimator::K2 {
            // Straight through: `value + k2 - k2.detach()`, in whatever order.
            result.scale += 2.0 * result.value.abs() + 0.5 * d * d;
        }
        if stopped {
            coverage::event(&["clamped", if d > 0.0 { "above" } else { "below" }]);
        }
        Token { d, inner, free, value: result, undecided, stopped }
    }

    fn gradient(&self, options: &Options) -> Number {
        if options.gradient == Gradient::K2 {
            return Scaled::rounded(self.d).into();
        }
        if self.undecided {
            return Number::OPEN;
        }
        if self.stopped {
            return Number::new(0.0, 0.0);
        }
        slope(options.estimator, self.inner).into()
    }
}

/// The bounds of the result, each with the direction in which it is left.
fn bounds(options: &Options) -> Option<[(f64, f64); 2]> {
    options.clamp.map(|[lo, hi]| [(lo, -1.0), (hi, 1.0)])
}

fn each(
    case: &KlEstimateCase,
    options: &Options,
    dtype: Dtype,
    field: &'static str,
    number: impl Fn(Token) -> Number,
) -> Vec<Expected> {
    let numbers = Array2::from_shape_fn(case.log_probs.dim(), |at| {
        number(Token::of(case.log_probs[at], case.ref_log_probs[at], options, dtype))
    });
    vec![Expected { field, numbers: numbers.into_dyn(), terms: 1 }]
}

/// What the definition gives.
pub(super) fn kl(case: &KlEstimateCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    each(case, options, dtype, "kl", |token| token.value.into())
}

/// The gradient of the summed estimates; open where rounding decides on which side of a clamp a
/// token lies.
pub(super) fn gradient(case: &KlEstimateCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    each(case, options, dtype, "grad_log_probs", |token| token.gradient(options))
}

/// The largest of the exact result and the exact gradient at one token.
pub(super) fn largest(log_prob: f64, reference: f64, options: &Options, dtype: Dtype) -> f64 {
    let token = Token::of(log_prob, reference, options, dtype);
    let gradient = match options.gradient {
        Gradient::K2 => token.d,
        _ if token.stopped && !token.undecided => 0.0,
        _ => slope(options.estimator, token.inner).value,
    };
    let open = if token.undecided { token.free.value } else { 0.0 };
    token.value.value.abs().max(gradient.abs()).max(open.abs())
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    fn options(estimator: Estimator) -> Options {
        Options { estimator, ..Options::default() }
    }

    /// The estimate and the gradient at one log-ratio.
    fn at(d: f64, options: &Options) -> (f64, f64) {
        let array = |x| Array2::from_elem((1, 1), x);
        let case = KlEstimateCase { log_probs: array(d), ref_log_probs: array(0.0) };
        let first = |expected: Vec<Expected>| expected[0].numbers[[0, 0]].value;
        let value = first(kl(&case, options, Dtype::F64));
        (value, first(gradient(&case, options, Dtype::F64)))
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-15 * (1.0 + b.abs()), "{a} is not {b}");
    }

    #[test]
    fn the_table_of_estimators() {
        let e = std::f64::consts::E;
        for (estimator, value, slope) in [
            (Estimator::K1, -1.0, 1.0),
            (Estimator::K2, 0.5, -1.0),
            (Estimator::K3, e - 2.0, 1.0 - e),
            (Estimator::Abs, 1.0, -1.0),
        ] {
            let (found, gradient) = at(-1.0, &options(estimator));
            near(found, value);
            near(gradient, slope);
            assert_eq!(at(0.0, &options(estimator)).0, 0.0);
        }
        near(at(1e-8, &options(Estimator::K3)).0, 5e-17);
    }

    #[test]
    fn on_average_over_the_policy_k1_and_k3_are_the_kl_of_two_coins() {
        let (a, b): (f64, f64) = (0.3, 0.6);
        let exact = a * (a / b).ln() + (1.0 - a) * ((1.0 - a) / (1.0 - b)).ln();
        let expectation = |estimator| {
            a * at((a / b).ln(), &options(estimator)).0
                + (1.0 - a) * at(((1.0 - a) / (1.0 - b)).ln(), &options(estimator)).0
        };
        near(expectation(Estimator::K1), exact);
        near(expectation(Estimator::K3), exact);
        assert!((expectation(Estimator::K2) - exact).abs() > 1e-3);
    }

    #[test]
    fn beyond_a_clamp_the_value_stays_and_the_derivative_is_zero() {
        let ratio = Options { log_ratio_clamp: Some(20.0), ..Options::default() };
        assert_eq!(at(-100.0, &ratio), (20_f64.exp() - 21.0, 0.0));
        let result = Options { clamp: Some([-10.0, 10.0]), ..Options::default() };
        assert_eq!(at(-100.0, &result), (10.0, 0.0));
        assert_eq!(at(-5.0, &result), (10.0, 0.0));
        assert!(at(-2.6, &result).0 < 10.0);
        let through = Options { gradient: Gradient::K2, ..result };
        assert_eq!(at(-100.0, &through), (10.0, -100.0));
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_value() {
        for estimator in Estimator::ALL {
            for d in [-3.0, -0.4, 0.2, 2.5] {
                let options = options(*estimator);
                let slope = (at(d + 1e-6, &options).0 - at(d - 1e-6, &options).0) / 2e-6;
                assert!((slope - at(d, &options).1).abs() < 1e-8);
            }
        }
    }
}
