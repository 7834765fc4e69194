//! The doors: `check`, `Suite`, `cases` and `fuzz` of the library, and the command.

pub mod check;
#[cfg(feature = "cli")]
pub mod cli;
pub mod fuzz;
pub mod prove;
#[cfg(feature = "snapshots")]
pub mod snapshots;
#[cfg(feature = "proptest")]
pub mod strategy;
pub mod suite;

#[cfg(test)]
#[path = "../../../tests/support/planted.rs"]
mod planted;
