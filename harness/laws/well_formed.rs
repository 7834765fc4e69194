//! The output has the promised names, shapes and types.
//!
//! ### Claim
//! The output has the promised names, shapes and a float dtype.
//!
//! ### Why it matters
//! Frameworks broadcast. An advantage of shape `[N, 1]` where `[N]` was promised becomes an `[N, N]`
//! product two functions later, and nothing raises when `N = T`. An integer tensor truncates.
//!
//! ### Does not hold for
//! A half-precision input may be answered in f32: half formats are storage, not arithmetic.
//!
//! ### Bugs it has caught
//! trl 4db63af98 and #6095: an `(N, N)` mask. prime-rl 8d77a2cd9: `(N, 1, T)` against `(N, T)`.

use crate::broken;
use crate::contract::{Contract, Pitfall};
use crate::invariant::{Doc, Invariant, Outcome, Probe, Stop};

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    Invariant {
        id: "well-formed",
        doc: Doc(include_str!("well_formed.rs")),
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
        other => return other.map(drop),
    }
    match &probe.failed {
        Some((_, failure)) if failure.is_malformed() => broken!("{failure}"),
        _ => Ok(()),
    }
}
