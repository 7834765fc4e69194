//! The component answers every valid input.
//!
//! ### Claim
//! The component does not raise.
//!
//! ### Why it matters
//! A component that raises on a degenerate batch ends a training run after hours. Trainers that
//! catch the exception put a zero in its place.
//!
//! ### Does not hold for
//! Inputs outside the contract, which are never generated.
//!
//! ### Bugs it has caught
//! SB3 #1028: a deviation with ddof 1 over one row. TRL's `masked_var` raises for a mask of one
//! token.

use crate::contract::Contract;
use crate::invariant::{Doc, Invariant, Outcome, Probe};
use crate::laws::answers;

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    answers::law("total", Doc(include_str!("total.rs")), check::<C>)
}

fn check<C: Contract>(probe: &mut Probe<'_, C>) -> Outcome {
    answers::check("total", probe)
}
