//! The tests of `bad_behaviour.rs` with `fork: false`: each worker is started for itself.

#[expect(clippy::duplicate_mod, reason = "the same tests under another FORK")]
#[path = "bad_behaviour.rs"]
mod bad_behaviour;

const FORK: bool = false;
