//! The log-probabilities one step after the other, on a tape: the terms have names.

use ndarray::{Array2, Axis};

use super::{Options, TokenLogProbsCase, TokenLogProbsOutput, columns, scored};
use shakedown_core::numeric::tape::{Tape, Var};
use shakedown_core::value::place::Dtype;

/// What the reference gives.
pub(super) fn log_probs(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
) -> TokenLogProbsOutput {
    let tape = Tape::new(dtype);
    let leaf = tape.leaf(&case.logits);
    let mut log_probs = Array2::zeros((case.tokens.nrows(), columns(case, options)));
    let mut sum = Vec::with_capacity(log_probs.len());
    for (row, column, token) in scored(case, options) {
        let logits = leaf.index_axis(Axis(0), row).index_axis_move(Axis(0), column);
        let z: Vec<Var<'_>> = logits.iter().map(|logit| *logit / options.temperature).collect();
        let largest = z.iter().fold(f64::NEG_INFINITY, |largest, z| largest.max(z.value));
        let exponentials = z.iter().map(|z| (*z - largest).exp());
        let log_normaliser = tape.sum(exponentials).ln() + largest;
        let log_prob = z[token].term("logit") - log_normaliser.term("log-normaliser");
        log_probs[[row, column]] = log_prob.value;
        sum.push(log_prob);
    }
    let gradient = tape.gradient(tape.sum(sum), &leaf);
    TokenLogProbsOutput { log_probs, grad_logits: Some(gradient) }
}
