//! The reference implementation of `token-log-probs`, as a trainer would write it.

use ndarray::{Array2, Array3};
use num_traits::Float;

use super::{Options, TokenLogProbsCase, TokenLogProbsOutput, columns, position, scored};
use shakedown_core::value::place::Dtype;

/// The log-probabilities and their gradient, computed in the arithmetic of the dtype.
pub(super) fn log_probs(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
) -> TokenLogProbsOutput {
    match dtype.arithmetic() {
        Dtype::F64 => in_arithmetic::<f64>(case, options),
        _ => in_arithmetic::<f32>(case, options),
    }
}

fn in_arithmetic<F: Float>(case: &TokenLogProbsCase, options: &Options) -> TokenLogProbsOutput {
    let number = |x: f64| F::from(x).expect("every float format holds any f64, rounded");
    let wide = |x: F| x.to_f64().expect("every float is an f64");
    let temperature = number(options.temperature);
    let mut log_probs = Array2::zeros((case.tokens.nrows(), columns(case, options)));
    let mut grad_logits = Array3::zeros(case.logits.dim());
    let mut z: Vec<F> = Vec::with_capacity(case.logits.dim().2);
    for (row, column, token) in scored(case, options) {
        z.clear();
        z.extend(position(case, row, column).iter().map(|x| number(*x) / temperature));
        let largest = z.iter().copied().fold(F::neg_infinity(), F::max);
        let own = z[token] - largest;
        let mut sum = F::zero();
        for z in &mut z {
            *z = (*z - largest).exp();
            sum = sum + *z;
        }
        log_probs[[row, column]] = wide(own - sum.ln());
        for (entry, exponential) in z.iter().enumerate() {
            let onehot = if entry == token { F::one() } else { F::zero() };
            grad_logits[[row, column, entry]] = wide((onehot - *exponential / sum) / temperature);
        }
    }
    TokenLogProbsOutput { log_probs, grad_logits: Some(grad_logits) }
}
