//! The component answers every valid input.
//!
//! ### Claim
//! The component answers: it does not raise, hang or die.
//!
//! ### Why it matters
//! A component that raises on a degenerate batch ends a training run after hours, and one that hangs
//! ends it without a word. Trainers that catch the exception put a zero in its place.
//!
//! ### Does not hold for
//! Inputs outside the contract, which are never generated.
//!
//! ### Bugs it has caught
//! SB3 #1028: a deviation with ddof 1 over one row. TRL's `masked_var` raises for a mask of one token.

use crate::broken;
use crate::component::Gradients;
use crate::contract::{Contract, Pitfall};
use crate::invariant::{Doc, Invariant, Outcome, Probe, Stop};

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    Invariant {
        id: "total",
        doc: Doc(include_str!("total.rs")),
        pitfall: Pitfall::PurityShapeDtype,
        catches: &[],
        needs_gradient: false,
        applies: |_, _| true,
        check: check::<C>,
    }
}

fn check<C: Contract>(probe: &mut Probe<'_, C>) -> Outcome {
    match probe.output() {
        Err(Stop::Failed) => {}
        Err(stop) => return Err(stop),
        Ok(_) if !C::wants_gradient(probe.options) || probe.gradients() != Gradients::Returned => {
            return Ok(());
        }
        Ok(_) => match probe.gradient_output() {
            Err(Stop::Failed) => {}
            other => return other.map(drop),
        },
    }
    match &probe.failed {
        Some((_, failure)) if !failure.is_malformed() => broken!("{failure}"),
        _ => Ok(()),
    }
}
