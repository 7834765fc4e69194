//! The output has the promised names, shapes and types.
//!
//! ### Claim
//! The output has the promised names, shapes and a float dtype.
//!
//! ### Why it matters
//! Frameworks broadcast. An advantage of shape `[N, 1]` where `[N]` was promised becomes an `[N,
//! N]` product two functions later, and nothing raises when `N = T`. An integer tensor truncates.
//!
//! ### Does not hold for
//! A half-precision input may be answered in f32: half formats are storage, not arithmetic. Flags
//! may be integers or booleans.
//!
//! ### Bugs it has caught
//! trl 4db63af98 and #6095: an `(N, N)` mask. prime-rl 8d77a2cd9: `(N, 1, T)` against `(N, T)`.

use crate::contract::Contract;
use crate::invariant::{Doc, Invariant, Outcome, Probe};
use crate::laws::answers;

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    answers::law("well-formed", Doc(include_str!("well_formed.rs")), check::<C>)
}

fn check<C: Contract>(probe: &mut Probe<'_, C>) -> Outcome {
    answers::check("well-formed", probe)
}
