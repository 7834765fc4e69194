//! Property-based testing and fuzzing for RL post-training pipelines.
#![deny(unsafe_code)] // one exception, with its reason, in `tensor/cuda.rs`
#![cfg_attr(not(feature = "tch"), forbid(unsafe_code))]

pub mod case_file;
pub mod check;
#[cfg(feature = "cli")]
pub mod cli;
pub mod component;
pub mod contract;
pub mod contracts;
mod diagnose;
pub mod draw;
pub mod error;
pub mod fault;
mod finding;
pub mod fuzz;
pub mod invariant;
mod journal;
pub mod laws;
pub mod manifest;
pub mod pick;
pub mod place;
pub mod process;
pub mod record;
pub mod report;
pub mod shrink;
pub mod stream;
mod suite;
#[cfg(feature = "tch")]
pub mod tensor;
pub mod text;
pub mod tolerance;
pub mod yaml;

pub use shrink::cases;
pub use suite::{Check, Suite, check, check_component};
