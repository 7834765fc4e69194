//! What the four laws about calls that fail have in common: each speaks of one kind of failure.

use crate::broken;
use crate::component::Gradients;
use crate::contract::{Contract, Pitfall};
use crate::invariant::{Doc, Invariant, Outcome, Probe, Stop};

/// A law about one kind of failure.
pub(super) fn law<C: Contract>(
    id: &'static str,
    doc: Doc,
    check: fn(&mut Probe<'_, C>) -> Outcome,
) -> Invariant<C> {
    Invariant {
        id,
        doc,
        pitfall: Pitfall::PurityShapeDtype,
        catches: &[],
        needs_gradient: false,
        applies: |_, _| true,
        check,
    }
}

/// Calls the component, with gradients too where it gives them, and is broken when a call fails
/// in the way that the law named `id` speaks of.
pub(super) fn check<C: Contract>(id: &str, probe: &mut Probe<'_, C>) -> Outcome {
    let mut answered = probe.output().map(drop);
    let gradients = C::wants_gradient(probe.options) && probe.gradients() == Gradients::Returned;
    if answered.is_ok() && gradients {
        answered = probe.gradient_output().map(drop);
    }
    match (answered, &probe.failed) {
        (Err(Stop::Failed), Some((_, failure))) if failure.law() == id => broken!("{failure}"),
        // A failure of another kind is the business of another law.
        (Err(Stop::Failed), _) => Ok(()),
        (answered, _) => answered,
    }
}
