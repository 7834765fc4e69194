//! The estimates one step after the other, on a tape: the terms have names, and a fault replaces a
//! step.

use ndarray::Array2;

use super::{Estimator, Gradient, KlEstimateCase, KlEstimateOutput, Options};
use shakedown_core::numeric::tape::{Tape, Var};
use shakedown_core::value::place::Dtype;

/// What the reference gives.
pub(super) fn kl(case: &KlEstimateCase, options: &Options, dtype: Dtype) -> KlEstimateOutput {
    tokens(case, options, dtype, |token| token.right())
}

/// One token on a tape, and the steps of a right estimate.
pub(super) struct Token<'a, 't> {
    pub(super) log_prob: Var<'t>,
    pub(super) reference: Var<'t>,
    pub(super) options: &'a Options,
}

impl<'t> Token<'_, 't> {
    pub(super) fn log_ratio(&self) -> Var<'t> {
        (self.log_prob - self.reference).term("log-ratio")
    }

    /// The log-ratio within its own clamp.
    pub(super) fn clamped(&self, d: Var<'t>) -> Var<'t> {
        self.options.log_ratio_clamp.map_or(d, |c| d.clamp(-c, c))
    }

    pub(super) fn estimate(&self, estimator: Estimator, d: Var<'t>) -> Var<'t> {
        match estimator {
            Estimator::K1 => d,
            Estimator::K2 => d * d * 0.5,
            Estimator::K3 => (-d).exp().term("ratio") - 1.0 + d,
            Estimator::Abs => d.abs(),
        }
    }

    pub(super) fn usual(&self) -> Var<'t> {
        self.estimate(self.options.estimator, self.clamped(self.log_ratio()))
    }

    /// The result within its clamp; beyond it no gradient, not even 0 times infinity.
    pub(super) fn limited(&self, value: Var<'t>) -> Var<'t> {
        match self.options.clamp {
            Some([lo, hi]) if !(lo..=hi).contains(&value.value) => value.detach().clamp(lo, hi),
            _ => value,
        }
    }

    /// The clamp of the result, and the declared gradient.
    pub(super) fn finished(&self, value: Var<'t>) -> Var<'t> {
        let value = self.limited(value);
        if self.options.gradient == Gradient::K2 {
            with_gradient_of(value, self.estimate(Estimator::K2, self.log_ratio()))
        } else {
            value
        }
    }

    pub(super) fn right(&self) -> Var<'t> {
        self.finished(self.usual())
    }
}

/// Maps each token to its estimate, with the gradient that follows.
pub(super) fn tokens(
    case: &KlEstimateCase,
    options: &Options,
    dtype: Dtype,
    f: impl for<'a, 't> Fn(&Token<'a, 't>) -> Var<'t>,
) -> KlEstimateOutput {
    let tape = Tape::new(dtype);
    let leaf = tape.leaf(&case.log_probs);
    let estimates: Array2<Var<'_>> = Array2::from_shape_fn(leaf.dim(), |at| {
        let reference = tape.constant(case.ref_log_probs[at]);
        f(&Token { log_prob: leaf[at], reference, options })
    });
    let sum = tape.sum(estimates.iter().copied());
    let gradient = (options.gradient != Gradient::None).then(|| tape.gradient(sum, &leaf));
    KlEstimateOutput { kl: estimates.map(|estimate| estimate.value), grad_log_probs: gradient }
}

/// A value, with the gradient of another.
pub(super) fn with_gradient_of<'t>(value: Var<'t>, other: Var<'t>) -> Var<'t> {
    value.detach() + (other - other.detach())
}
