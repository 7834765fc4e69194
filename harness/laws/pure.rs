//! The component does not change its inputs.
//!
//! ### Claim
//! The inputs are the same after the call as before.
//!
//! ### Why it matters
//! An in-place operation on a tensor that is logged, returned or used by the next stage changes
//! numbers far from here: the second epoch sees other rewards than the first.
//!
//! ### Does not hold for
//! Components on host arrays, which the compiler keeps from writing into their inputs.
//!
//! ### Bugs it has caught
//! slime #2114: `kl *= -beta` on the tensor that is logged. OpenRLHF's `log_probs_from_logits`
//! divides its argument by the temperature in place.

use crate::broken;
use crate::contract::{Contract, Pitfall};
use crate::invariant::{Doc, Invariant, Outcome, Probe};

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    Invariant {
        id: "pure",
        doc: Doc(include_str!("pure.rs")),
        pitfall: Pitfall::PurityShapeDtype,
        catches: &[],
        needs_gradient: false,
        applies: |_, _| true,
        check: check::<C>,
    }
}

fn check<C: Contract>(probe: &mut Probe<'_, C>) -> Outcome {
    let returned = probe.output()?;
    if let Some(name) = returned.changed.first() {
        broken!("`{name}` is not the same after the call as before");
    }
    Ok(())
}
