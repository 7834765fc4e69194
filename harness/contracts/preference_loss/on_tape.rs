//! The loss of a pair one step after the other, on a tape: the terms have names, and a fault
//! replaces a step.

use ndarray::{Array1, arr0};

use super::{Kind, Options, PreferenceLossCase, PreferenceLossOutput, Reduction, reference};
use shakedown_core::numeric::tape::{Tape, Var};
use shakedown_core::value::place::Dtype;

/// What the reference gives.
pub(super) fn loss(
    case: &PreferenceLossCase,
    options: &Options,
    dtype: Dtype,
) -> PreferenceLossOutput {
    pairs(case, options, dtype, |pair| pair.right())
}

/// Maps each pair to its loss, reduces them, and takes the gradients; the rewards are right.
pub(super) fn pairs(
    case: &PreferenceLossCase,
    options: &Options,
    dtype: Dtype,
    f: impl for<'a, 't> Fn(&Pair<'a, 't>) -> Var<'t>,
) -> PreferenceLossOutput {
    let tape = Tape::new(dtype);
    let (chosen, rejected) = (tape.leaf(&case.policy_chosen), tape.leaf(&case.policy_rejected));
    let losses: Array1<Var<'_>> = Array1::from_shape_fn(chosen.len(), |at| {
        let reference = |log_probs: &Array1<f64>| tape.constant(log_probs[at]);
        f(&Pair {
            chosen: chosen[at],
            rejected: rejected[at],
            ref_chosen: reference(&case.ref_chosen).term("reference log-prob"),
            ref_rejected: reference(&case.ref_rejected).term("reference log-prob"),
            one: tape.constant(1.0),
            options,
        })
    });
    let sum = tape.sum(losses.iter().copied());
    let right = reference::loss(case, options, dtype);
    let (result, losses, loss) = match options.reduction {
        Reduction::None => (sum, Some(losses.map(|loss| loss.value)), None),
        Reduction::Mean => {
            let mean = sum / losses.len() as f64;
            (mean, None, Some(arr0(mean.value)))
        }
    };
    PreferenceLossOutput {
        losses,
        loss,
        grad_policy_chosen: Some(tape.gradient(result, &chosen)),
        grad_policy_rejected: Some(tape.gradient(result, &rejected)),
        ..right
    }
}

/// log(1 + e^x), stable.
pub(super) fn softplus(x: Var<'_>) -> Var<'_> {
    (x + x.abs()) * 0.5 + ((-x.abs()).exp() + 1.0).ln()
}

/// 1 / (1 + e^{-x}), as it stands.
pub(super) fn sigmoid<'t>(one: Var<'t>, x: Var<'t>) -> Var<'t> {
    one / ((-x).exp() + 1.0)
}

/// One pair on a tape, and the steps of a right loss.
pub(super) struct Pair<'a, 't> {
    pub(super) chosen: Var<'t>,
    pub(super) rejected: Var<'t>,
    /// The same under the reference.
    ref_chosen: Var<'t>,
    ref_rejected: Var<'t>,
    /// 1.
    pub(super) one: Var<'t>,
    pub(super) options: &'a Options,
}

impl<'t> Pair<'_, 't> {
    /// Δ with the reference.
    pub(super) fn full_margin(&self) -> Var<'t> {
        let chosen = (self.chosen - self.ref_chosen).term("chosen log-ratio");
        let rejected = (self.rejected - self.ref_rejected).term("rejected log-ratio");
        (chosen - rejected).term("margin")
    }

    /// Δ as declared.
    pub(super) fn margin(&self) -> Var<'t> {
        match self.options.reference_free {
            true => {
                let chosen = self.chosen.term("chosen log-prob");
                (chosen - self.rejected.term("rejected log-prob")).term("margin")
            }
            false => self.full_margin(),
        }
    }

    /// βΔ - γ.
    pub(super) fn z(&self, margin: Var<'t>) -> Var<'t> {
        margin * self.options.beta - self.options.margin
    }

    /// The loss made of softplus(-z) and softplus(z), for the kinds that have them.
    pub(super) fn of_logistic(&self, below: Var<'t>, above: Var<'t>) -> Option<Var<'t>> {
        let smoothing = self.options.label_smoothing;
        let smoothed = || (above * smoothing).term("label-smoothing loss");
        match self.options.kind {
            // Without smoothing nobody computes the second term.
            Kind::Sigmoid | Kind::Robust if smoothing == 0.0 => Some(below),
            Kind::Sigmoid => Some(below * (1.0 - smoothing) + smoothed()),
            Kind::Robust => {
                Some((below * (1.0 - smoothing) - smoothed()) / (1.0 - 2.0 * smoothing))
            }
            Kind::Hinge | Kind::Ipo => None,
        }
    }

    /// The squared distance from a target, where that is the loss.
    pub(super) fn ipo(&self, margin: Var<'t>, target: f64) -> Option<Var<'t>> {
        let away = margin - target;
        (self.options.kind == Kind::Ipo).then(|| away * away)
    }

    /// The loss at z, for the kinds that look at z.
    pub(super) fn loss_at(&self, z: Var<'t>) -> Var<'t> {
        let hinge = -z + 1.0;
        let hinge = if hinge.value > 0.0 { hinge } else { hinge * 0.0 };
        self.of_logistic(softplus(-z), softplus(z)).unwrap_or(hinge)
    }

    pub(super) fn loss(&self, margin: Var<'t>) -> Var<'t> {
        self.ipo(margin, 0.5 / self.options.beta).unwrap_or_else(|| self.loss_at(self.z(margin)))
    }

    pub(super) fn right(&self) -> Var<'t> {
        self.loss(self.margin())
    }
}
