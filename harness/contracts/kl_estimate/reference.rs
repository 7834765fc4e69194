//! The reference implementation of `kl-estimate`, as a trainer would write it.

use ndarray::Array2;

use super::{Estimator, Gradient, KlEstimateCase, KlEstimateOutput, Options};
use shakedown_core::value::place::Dtype;

/// The estimates and their gradient, computed in the arithmetic of the dtype.
pub(super) fn kl(case: &KlEstimateCase, options: &Options, dtype: Dtype) -> KlEstimateOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let c = f(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
    let [lo, hi] = options.clamp.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]).map(f);
    let mut kl = Array2::zeros(case.log_probs.dim());
    let mut gradient = kl.clone();
    for (at, log_prob) in case.log_probs.indexed_iter() {
        let raw = f(log_prob - case.ref_log_probs[at]);
        let d = raw.clamp(-c, c);
        let (value, slope) = match options.estimator {
            Estimator::K1 => (d, 1.0),
            Estimator::K2 => (f(0.5 * f(d * d)), d),
            Estimator::K3 => {
                let ratio = f((-d).exp());
                (f(f(ratio - 1.0) + d), f(1.0 - ratio))
            }
            Estimator::Abs if d == 0.0 => (0.0, 0.0),
            Estimator::Abs => (d.abs(), d.signum()),
        };
        kl[at] = value.clamp(lo, hi);
        // Chosen and not multiplied: beyond the clamps the slope may be infinite.
        gradient[at] = if options.gradient == Gradient::K2 {
            raw
        } else if raw == d && (lo..=hi).contains(&value) {
            slope
        } else {
            0.0
        };
    }
    let wanted = options.gradient != Gradient::None;
    KlEstimateOutput { kl, grad_log_probs: wanted.then_some(gradient) }
}
