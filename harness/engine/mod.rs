//! The engine: checking, shrinking, diagnosing. Compiled once for all contracts.

pub mod check;
pub(crate) mod cut_down;
pub(crate) mod diagnose;
pub(crate) mod finding;
pub mod interrupt;
pub(crate) mod outcomes;
pub(crate) mod patience;
#[cfg(test)]
pub(crate) mod planted;
pub mod recorded;
pub mod shrink;
pub mod subject;
