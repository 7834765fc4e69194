//! A component that promises to raise does.
//!
//! ### Claim
//! Where `empty_mask: refuse` is declared, a reduction over too few tokens raises.
//!
//! ### Why it matters
//! Who declares this wants the run to stop instead of going on with a number made of nothing.
//!
//! ### Does not hold for
//! The other values of `empty_mask`.
//!
//! ### Bugs it has caught
//! ROLL #475: none is refused, but one token gives NaN.

use crate::broken;
use crate::contract::{Contract, Pitfall};
use crate::invariant::{Doc, Invariant, Outcome, Probe};
use crate::place::Place;

/// The law, for the contract `C`; `applies` says under which options there is something to refuse.
pub fn law<C: Contract>(applies: fn(&C::Options, Place) -> bool) -> Invariant<C> {
    Invariant {
        id: "refuses",
        doc: Doc(include_str!("refuses.rs")),
        pitfall: Pitfall::StabilityConstant,
        catches: &[],
        needs_gradient: false,
        applies,
        check: check::<C>,
    }
}

fn check<C: Contract>(probe: &mut Probe<'_, C>) -> Outcome {
    if !probe.raises()? {
        broken!("it returned something, expected an error: `empty_mask: refuse`");
    }
    Ok(())
}
