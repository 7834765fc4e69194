//! Faults that several contracts have in common, written once.

pub mod recursion;
pub mod temperature;
