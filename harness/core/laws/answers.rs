//! What the four laws about calls that fail have in common: each speaks of one kind of failure.

use crate::contract::component::Gradients;
use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::contract::outcome::{Outcome, Stop};
use crate::contract::probe::AnyProbe;
use crate::contract::stage::Pitfall;

/// A law about one kind of failure.
pub(super) fn law<D: Definition>(
    id: &'static str,
    doc: &'static str,
    check: fn(&mut AnyProbe<'_>) -> Outcome,
) -> Invariant<D> {
    Invariant::law(id, doc, Pitfall::PurityShapeDtype, check)
}

/// Calls the component, with gradients too where it gives them, and is broken when a call fails
/// in the way that the law named `id` speaks of.
pub(super) fn check(id: &str, probe: &mut AnyProbe<'_>) -> Outcome {
    let mut answered = probe.output().map(drop);
    let gradients =
        probe.contract.wants_gradient(&**probe.options) && probe.gradients() == Gradients::Returned;
    if answered.is_ok() && gradients {
        answered = probe.gradient_output().map(drop);
    }
    match (answered, &probe.failed) {
        (Err(Stop::Failed), Some((_, failure))) if failure.law() == id => {
            Err(Stop::Broken(failure.found()))
        }
        // A failure of another kind is the business of another law.
        (Err(Stop::Failed), _) => Ok(()),
        (answered, _) => answered,
    }
}
