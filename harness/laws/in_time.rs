//! The component answers in time.
//!
//! ### Claim
//! A call ends within the time limit.
//!
//! ### Why it matters
//! A reward function that hangs on one completion (a symbolic comparison, a regular expression
//! that backtracks) stops a training run without a word.
//!
//! ### Does not hold for
//! Components that are slow on purpose: raise `timeout_ms`.
//!
//! ### Bugs it has caught
//! Verifiers that parse LaTeX with a backtracking grammar; timeouts by SIGALRM that work in the
//! main thread only.

use crate::contract::Contract;
use crate::invariant::{Doc, Invariant, Outcome, Probe};
use crate::laws::answers;

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    answers::law("in-time", Doc(include_str!("in_time.rs")), check::<C>)
}

fn check<C: Contract>(probe: &mut Probe<'_, C>) -> Outcome {
    answers::check("in-time", probe)
}
