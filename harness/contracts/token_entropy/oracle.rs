//! The definition of `token-entropy` in plain f64, with the scale of every number.

use ndarray::{Array2, Array3, ArrayView1};

use super::{NegInf, Options, TokenEntropyCase, positions, vocabulary};
use shakedown_core::numeric::tolerance::{Expected, Number, summed};

/// The distribution at one position.
pub(crate) struct Distribution {
    /// The logits over the temperature.
    z: Vec<f64>,
    /// Their largest.
    largest: f64,
    /// The logarithm of each probability.
    log_probs: Vec<f64>,
    /// In nats.
    pub(crate) entropy: f64,
    /// The magnitude of the numbers whose difference is the entropy in its second form.
    cancelled: f64,
}

impl Distribution {
    pub(crate) fn of(logits: ArrayView1<'_, f64>, temperature: f64) -> Distribution {
        let z: Vec<f64> = logits.iter().map(|logit| logit / temperature).collect();
        let best =
            (1..z.len()).fold(0, |best, entry| if z[entry] > z[best] { entry } else { best });
        let largest = z[best];
        // Without the largest, so that the logarithm of a probability near 1 keeps its digits.
        let others = z.iter().enumerate().filter(|(entry, _)| *entry != best);
        let above = others.map(|(_, z)| (z - largest).exp()).sum::<f64>().ln_1p();
        let log_probs: Vec<f64> = z.iter().map(|z| z - largest - above).collect();
        let (mut entropy, mut cancelled) = (0.0, largest.abs());
        for (log_prob, z) in log_probs.iter().zip(&z) {
            let probability = log_prob.exp();
            // The limit of p·log p is 0.
            if probability > 0.0 {
                entropy -= probability * log_prob;
                cancelled += probability * z.abs();
            }
        }
        Distribution { z, largest, log_probs, entropy, cancelled }
    }

    fn size(&self) -> usize {
        self.z.len()
    }

    /// The entropy. Of the two forms the second one is the coarser: it cancels logsumexp(z) and
    /// Σ p·z, each a sum over the vocabulary.
    pub(crate) fn number(&self) -> Number {
        let scale = summed(self.size()) * (1.0 + self.cancelled + self.entropy);
        Number::new(self.entropy, scale)
    }

    /// The derivative by one z. An error of the exponent counts as many times as the logarithm of
    /// the probability differs from its mean.
    pub(crate) fn slope(&self, entry: usize) -> Number {
        let log_prob = self.log_probs[entry];
        let probability = log_prob.exp();
        if probability == 0.0 {
            return Number::new(0.0, 0.0);
        }
        let away = log_prob + self.entropy;
        let terms = 1.0 + self.z[entry].abs() + self.largest.abs() + self.cancelled;
        let scale = probability
            * summed(self.size())
            * (terms + log_prob.abs() + self.entropy)
            * (1.0 + away.abs());
        Number::new(-probability * away, scale)
    }
}

/// Whether the position's entropy is promised to be NaN.
fn undefined(logits: ArrayView1<'_, f64>, options: &Options) -> bool {
    options.neg_inf == NegInf::Nan && logits.iter().any(|logit| logit.is_infinite())
}

/// What the definition gives.
pub(super) fn entropy(case: &TokenEntropyCase, options: &Options) -> Vec<Expected> {
    let (rows, columns, _) = case.logits.dim();
    let mut numbers = Array2::from_elem((rows, columns), Number::NAN);
    for (at, logits) in positions(case) {
        if !undefined(logits, options) {
            numbers[at] = Distribution::of(logits, options.temperature).number();
        }
    }
    vec![Expected { field: "entropy", numbers: numbers.into_dyn(), terms: vocabulary(case) }]
}

/// The gradient of the summed entropies: -p·(log p + H) / temperature.
pub(super) fn gradient(case: &TokenEntropyCase, options: &Options) -> Vec<Expected> {
    let mut numbers = Array3::from_elem(case.logits.dim(), Number::ANYTHING);
    for ((row, column), logits) in positions(case) {
        if undefined(logits, options) {
            continue;
        }
        let distribution = Distribution::of(logits, options.temperature);
        for entry in 0..logits.len() {
            let Number { value, scale, .. } = distribution.slope(entry);
            let by = options.temperature;
            numbers[[row, column, entry]] = Number::new(value / by, scale / by);
        }
    }
    vec![Expected { field: "grad_logits", numbers: numbers.into_dyn(), terms: vocabulary(case) }]
}

#[cfg(test)]
mod tests {
    use ndarray::Array;

    use super::*;

    fn case(logits: &[f64]) -> TokenEntropyCase {
        let shape = (1, 1, logits.len());
        TokenEntropyCase { logits: Array::from_shape_vec(shape, logits.to_vec()).unwrap() }
    }

    pub(crate) fn of(logits: &[f64], options: &Options) -> f64 {
        entropy(&case(logits), options)[0].numbers[[0, 0]].value
    }

    fn slopes(logits: &[f64], options: &Options) -> Vec<f64> {
        gradient(&case(logits), options)[0].numbers.iter().map(|number| number.value).collect()
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 4e-15 * (1.0 + b.abs()), "{a} is not {b}");
    }

    fn zero() -> Options {
        Options { neg_inf: NegInf::Zero, ..Options::default() }
    }

    #[test]
    fn uniform_over_k_tokens_gives_ln_k() {
        for size in [2, 3, 8, 33] {
            for level in [0.0, -7.5, 1e3] {
                near(of(&vec![level; size], &Options::default()), (size as f64).ln());
                assert!(slopes(&vec![level; size], &zero()).iter().all(|g| g.abs() < 1e-15));
            }
        }
        near(of(&[1.0, f64::NEG_INFINITY, 1.0], &zero()), 2_f64.ln());
        assert_eq!(of(&[1.0, f64::NEG_INFINITY], &zero()), 0.0);
        assert!(
            of(&[1.0, f64::NEG_INFINITY], &Options { neg_inf: NegInf::Nan, ..zero() }).is_nan()
        );
    }

    #[test]
    fn one_logit_higher_by_a_margin() {
        for margin in [0.5, 5.0, 20.0, 90.0] {
            for size in [2, 3, 8] {
                let others = size as f64 - 1.0;
                let rest = others * f64::exp(-margin);
                // q·ln q of the largest, and the rest, which share 1 - q.
                let q = 1.0 / (1.0 + rest);
                let expected = q * rest.ln_1p() + rest * q * (margin + rest.ln_1p());
                let mut logits = vec![0.0; size];
                logits[1] = margin;
                near(of(&logits, &Options::default()), expected);
            }
        }
        assert!(of(&[0.0, 90.0], &Options::default()) > 0.0);
    }

    #[test]
    fn two_tokens_are_a_coin_at_every_temperature() {
        for temperature in [0.1, 0.7, 1.0, 2.0] {
            let q = 1.0 / (1.0 + f64::exp(-1.0 / temperature));
            let expected = -q * q.ln() - (1.0 - q) * (1.0 - q).ln();
            let options = Options { temperature, ..Options::default() };
            assert!((of(&[1.0, 0.0], &options) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_entropy_and_sums_to_zero() {
        let logits = [0.3, -1.2, 2.0, f64::NEG_INFINITY];
        let options = Options { temperature: 0.7, ..zero() };
        let found = slopes(&logits, &options);
        assert!(found.iter().sum::<f64>().abs() < 1e-15);
        assert_eq!(found[3], 0.0);
        for entry in 0..3 {
            let at = |step: f64| {
                let mut moved = logits;
                moved[entry] += step;
                of(&moved, &options)
            };
            let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!((slope - found[entry]).abs() < 1e-8);
        }
    }
}
