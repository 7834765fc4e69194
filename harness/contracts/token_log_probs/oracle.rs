//! The definition of `token-log-probs` in plain f64, with the scale of every number.

use ndarray::{Array2, Array3};

use super::{Options, TokenLogProbsCase, columns, position, scored, vocabulary};
use shakedown_core::numeric::tolerance::{Expected, Number, summed};

/// The logarithm of a position's normaliser, in two parts that are never added: so that a
/// log-probability near 0 keeps its digits.
struct Normaliser {
    /// The largest z.
    largest: f64,
    /// ln Σ exp(z - largest), at least 0.
    above: f64,
}

impl Normaliser {
    fn of(logits: impl Iterator<Item = f64> + Clone, temperature: f64) -> Normaliser {
        let z = logits.map(|logit| logit / temperature);
        let largest = z.clone().fold(f64::NEG_INFINITY, f64::max);
        let mut first = true;
        let mut rest = 0.0;
        for z in z {
            if first && z == largest {
                first = false;
            } else {
                rest += (z - largest).exp();
            }
        }
        Normaliser { largest, above: rest.ln_1p() }
    }

    fn log_prob(&self, z: f64) -> f64 {
        (z - self.largest) - self.above
    }
}

/// What the definition gives, token by token.
///
/// The scale is the magnitude of the two numbers that are subtracted, z of the token and the
/// largest z, plus the result, plus what the sum of the weights costs. Smaller logits have no
/// part in it: their weight falls faster than their rounding error grows.
pub(super) fn log_probs(case: &TokenLogProbsCase, options: &Options) -> Vec<Expected> {
    let shape = (case.tokens.nrows(), columns(case, options));
    let mut numbers = Array2::from_elem(shape, Number::new(0.0, 0.0));
    for (row, column, token) in scored(case, options) {
        let logits = position(case, row, column);
        let normaliser = Normaliser::of(logits.iter().copied(), options.temperature);
        let z = logits[token] / options.temperature;
        let value = normaliser.log_prob(z);
        let scale = summed(logits.len()) + z.abs() + normaliser.largest.abs() + value.abs();
        numbers[[row, column]] = Number::new(value, scale);
    }
    vec![Expected { field: "log_probs", numbers: numbers.into_dyn(), terms: vocabulary(case) }]
}

/// The gradient of the summed log-probabilities: (onehot - softmax) / temperature, and 0 where
/// nothing is scored.
///
/// A probability inherits the rounding errors of its own z and of the normaliser, times itself.
pub(super) fn gradient(case: &TokenLogProbsCase, options: &Options) -> Vec<Expected> {
    let mut numbers = Array3::from_elem(case.logits.dim(), Number::new(0.0, 0.0));
    for (row, column, token) in scored(case, options) {
        let logits = position(case, row, column);
        let normaliser = Normaliser::of(logits.iter().copied(), options.temperature);
        for (entry, logit) in logits.iter().enumerate() {
            let z = logit / options.temperature;
            let log_prob = normaliser.log_prob(z);
            let probability = log_prob.exp();
            let own = entry == token;
            // 1 - p of a sure token, without losing its digits.
            let value = if own { -log_prob.exp_m1() } else { -probability };
            let error = if probability > 0.0 {
                probability * (summed(logits.len()) + z.abs() + 2.0 * normaliser.largest.abs())
            } else {
                0.0
            };
            let scale = error + f64::from(u8::from(own));
            numbers[[row, column, entry]] =
                Number::new(value / options.temperature, scale / options.temperature);
        }
    }
    vec![Expected { field: "grad_logits", numbers: numbers.into_dyn(), terms: vocabulary(case) }]
}

#[cfg(test)]
mod tests {
    use ndarray::Array;

    use super::super::Shift;
    use super::*;

    fn case(logits: &[f64], token: i64) -> TokenLogProbsCase {
        TokenLogProbsCase {
            logits: Array::from_shape_vec((1, 1, logits.len()), logits.to_vec()).unwrap(),
            tokens: Array::from_shape_vec((1, 1), vec![token]).unwrap(),
        }
    }

    fn log_prob(logits: &[f64], token: i64, temperature: f64) -> f64 {
        let options = Options { temperature, ..Options::default() };
        log_probs(&case(logits, token), &options)[0].numbers[[0, 0]].value
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 4e-16 * (1.0 + b.abs()), "{a} is not {b}");
    }

    #[test]
    fn uniform_logits_give_minus_ln_v() {
        for size in [2, 3, 8, 33] {
            for level in [0.0, -7.5, 1e4] {
                near(log_prob(&vec![level; size], 1, 0.7), -(size as f64).ln());
            }
        }
    }

    #[test]
    fn one_logit_higher_by_a_margin() {
        for margin in [0.5, 5.0, 90.0, 1e4] {
            for size in [2, 3, 8] {
                let mut logits = vec![0.0; size];
                logits[1] = margin;
                let others = (size as f64 - 1.0) * f64::exp(-margin);
                near(log_prob(&logits, 1, 1.0), -others.ln_1p());
                near(log_prob(&logits, 0, 1.0), -margin - others.ln_1p());
            }
        }
        // A sure token keeps its digits: not 0, and not a multiple of the unit roundoff.
        assert_eq!(log_prob(&[0.0, 90.0], 1, 1.0), -(-90.0_f64).exp());
    }

    #[test]
    fn two_tokens_give_a_softplus() {
        for temperature in [0.1, 0.6, 1.0, 1.5] {
            for lead in [-3.0, -0.25, 0.0, 1.0, 4.0] {
                let softplus = f64::exp(-lead / temperature).ln_1p();
                near(log_prob(&[lead, 0.0], 0, temperature), -softplus);
            }
        }
    }

    #[test]
    fn minus_infinity_counts_nothing() {
        near(log_prob(&[0.0, f64::NEG_INFINITY, 0.0], 2, 1.0), -(2.0_f64.ln()));
        near(log_prob(&[3.0, f64::NEG_INFINITY], 0, 1.0), 0.0);
    }

    #[test]
    fn the_gradient_at_uniform_logits_is_onehot_minus_one_over_v() {
        for temperature in [0.5, 1.0, 2.0] {
            let options = Options { temperature, ..Options::default() };
            let found = &gradient(&case(&[2.0; 4], 3), &options)[0].numbers;
            for entry in 0..4 {
                let onehot = if entry == 3 { 1.0 } else { 0.0 };
                near(found[[0, 0, entry]].value, (onehot - 0.25) / temperature);
            }
        }
    }

    #[test]
    fn the_gradient_is_finite_beside_minus_infinity_and_at_extremes() {
        let found = gradient(&case(&[1e4, f64::NEG_INFINITY, -1e4], 2), &Options::default());
        let values: Vec<f64> = found[0].numbers.iter().map(|number| number.value).collect();
        assert_eq!(values, [-1.0, 0.0, 1.0]);
        assert!(found[0].numbers.iter().all(|number| number.scale.is_finite()));
    }

    #[test]
    fn shifted_logits_score_the_next_token_and_the_last_position_nothing() {
        let two = TokenLogProbsCase {
            logits: Array::from_shape_vec((1, 2, 2), vec![0.0, 1.0, 7.0, 9.0]).unwrap(),
            tokens: Array::from_shape_vec((1, 2), vec![0, 1]).unwrap(),
        };
        let options = Options { shift: Shift::Next, ..Options::default() };
        let expected = log_probs(&two, &options);
        assert_eq!(expected[0].numbers.shape(), [1, 1]);
        near(expected[0].numbers[[0, 0]].value, -(-1.0_f64).exp().ln_1p());
        let found = &gradient(&two, &options)[0].numbers;
        assert!(found[[0, 0, 1]].value > 0.0);
        assert_eq!(found[[0, 1, 0]].value, 0.0);
        assert_eq!(found[[0, 1, 1]].value, 0.0);
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_value() {
        let logits = [0.3, -1.2, 2.0, f64::NEG_INFINITY];
        let options = Options { temperature: 0.7, ..Options::default() };
        let found = &gradient(&case(&logits, 1), &options)[0].numbers;
        for entry in 0..3 {
            let at = |step: f64| {
                let mut moved = logits;
                moved[entry] += step;
                log_prob(&moved, 1, 0.7)
            };
            let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!((slope - found[[0, 0, entry]].value).abs() < 1e-8);
        }
    }
}
