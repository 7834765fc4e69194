//! The crate `shakedown-targets`, which links libtorch: one thread, as libtorch wants it.

#[path = "../support/night.rs"]
mod night;
#[path = "../support/recorded.rs"]
mod recorded;
#[path = "../support/snapshot.rs"]
mod snapshot;
#[path = "../support/summary.rs"]
mod summary;

mod learning;
mod objectives;
mod outputs;
mod real;
mod reference;
mod tensors;
mod tutorial;
