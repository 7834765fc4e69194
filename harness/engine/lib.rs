//! The engine of `shakedown`: components are checked, findings are shrunk, diagnosed and kept.
//! It knows no contract, so it is compiled once for all of them.
//!
//! What is public here is so for the crate `shakedown`: depend on that one.

#![deny(unsafe_code)] // with a reason where a file is memory: `tests/library/tidy.rs` has the list

pub mod check;
pub mod cut_down;
pub mod diagnose;
mod diagnosis;
pub mod files;
pub mod finding;
pub mod host;
pub mod interrupt;
pub mod outcomes;
pub mod patience;
pub mod recorded;
pub mod report;
pub mod shrink;
pub mod subject;

#[cfg(test)]
extern crate self as shakedown_engine;
#[cfg(test)]
#[path = "../../tests/support/planted.rs"]
mod planted;
