//! The component does not take its process along.
//!
//! ### Claim
//! A call does not end the process.
//!
//! ### Why it matters
//! A native extension that reads past a buffer, an `exit()` in a library, memory that runs out:
//! the training process is gone, and its last checkpoint is hours old.
//!
//! ### Does not hold for
//! Components in the process of the harness, whose end is the end of the run; the next run begins
//! with the case that was in flight.
//!
//! ### Bugs it has caught
//! Index kernels that trust their ids; `sys.exit` in scripts used as modules.

use crate::contract::Contract;
use crate::invariant::{Doc, Invariant, Outcome, Probe};
use crate::laws::answers;

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    answers::law("survives", Doc(include_str!("survives.rs")), check::<C>)
}

fn check<C: Contract>(probe: &mut Probe<'_, C>) -> Outcome {
    answers::check("survives", probe)
}
