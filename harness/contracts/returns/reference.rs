//! The reference implementation of `returns`, as a trainer would write it: one pass from the end.

use ndarray::Array2;

use super::{Options, ReturnsCase};
use shakedown_core::numeric::conventions::MaskedTokens;
use shakedown_core::value::place::Dtype;

/// The returns, computed in the arithmetic of the dtype.
pub(super) fn returns(case: &ReturnsCase, options: &Options, dtype: Dtype) -> Array2<f64> {
    let f = |x: f64| dtype.arithmetic().round(x);
    let gamma = f(options.gamma);
    let mut returns = Array2::zeros(case.rewards.dim());
    for (row, mut returns) in returns.rows_mut().into_iter().enumerate() {
        let mut ahead = 0.0;
        for token in (0..returns.len()).rev() {
            if case.mask[[row, token]] {
                ahead = f(case.rewards[[row, token]] + f(gamma * ahead));
                returns[token] = ahead;
            } else if options.masked == MaskedTokens::Zero {
                ahead = f(gamma * ahead);
            }
        }
    }
    returns
}
