//! The tests of `bad_behaviour.rs` with `fork: false`: each worker is started for itself.
#![cfg(feature = "cli")]

#[path = "bad_behaviour.rs"]
mod bad_behaviour;
