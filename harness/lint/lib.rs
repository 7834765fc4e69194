//! What surrounds the components: logs of runs, configurations and data sets, and the rules that
//! say what looks wrong in them. Knows no contract.
//!
//! What is public here is so for the crate `shakedown`: depend on that one.

#![deny(unsafe_code)]

pub mod datasets;
pub mod report;
pub mod rules;
pub mod runs;
pub mod settings;
