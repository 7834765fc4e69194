//! Faults that several contracts have in common, written once.

pub mod entropy;
pub mod masking;
pub mod precision;
pub mod recursion;
pub mod temperature;
