//! The reference implementation of `token-entropy`, as a trainer would write it.

use ndarray::{Array2, Array3};

use super::{NegInf, Options, TokenEntropyCase, TokenEntropyOutput, positions};
use shakedown_core::value::place::Dtype;

/// The entropies and their gradient, computed in the arithmetic of the dtype.
pub(super) fn entropy(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
) -> TokenEntropyOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let temperature = f(options.temperature);
    let (rows, columns, size) = case.logits.dim();
    let mut entropy = Array2::zeros((rows, columns));
    let mut gradient = Array3::zeros((rows, columns, size));
    let mut log_probs: Vec<f64> = Vec::with_capacity(size);
    for ((row, column), logits) in positions(case) {
        let largest = logits.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let largest = f(largest / temperature);
        log_probs.clear();
        log_probs.extend(logits.iter().map(|logit| f(f(logit / temperature) - largest)));
        let sum = log_probs.iter().fold(0.0, |sum, z| f(sum + f(z.exp())));
        let log_sum = f(sum.ln());
        log_probs.iter_mut().for_each(|z| *z = f(*z - log_sum));
        // Where no number is promised, p·log p = 0·∞ is left as it comes.
        let term = |log_prob: f64, other: f64| {
            let probability = f(log_prob.exp());
            let skipped = probability == 0.0 && options.neg_inf != NegInf::Nan;
            if skipped { 0.0 } else { f(probability * f(log_prob + other)) }
        };
        let total = log_probs.iter().fold(0.0, |sum, log_prob| f(sum + term(*log_prob, 0.0)));
        entropy[[row, column]] = 0.0 - total;
        for (entry, log_prob) in log_probs.iter().enumerate() {
            gradient[[row, column, entry]] = 0.0 - f(term(*log_prob, -total) / temperature);
        }
    }
    TokenEntropyOutput { entropy, grad_logits: options.gradient.then_some(gradient) }
}
