//! Property-based testing and fuzzing for RL post-training pipelines.
//!
//! shakedown attacks the components of a pipeline (rewards, decoders, advantages,
//! log-probabilities, losses) with adversarial inputs and checks what must hold. What fails is
//! shrunk to the smallest case, compared with known bugs, and kept.
//!
//! # Words
//!
//! - A [contract](contract::Contract) is a kind of component: its inputs, outputs, options and
//!   invariants. [`contracts`] has them all.
//! - A [component](component::Component) is one implementation: a Rust function, a function on
//!   tensors, a Python function, a process.
//! - A case is one input. It is generated, or read from a [case file](case_file::CaseFile).
//! - A [place](place::Place) is a device and a dtype: `cpu/f32`.
//! - An [invariant](invariant::Invariant) is something that must hold; the oracle is the definition
//!   in plain f64; a [fault](fault::Fault) is a known wrong behaviour.
//! - A [finding](report::Finding) is an invariant that a component breaks, on its smallest case,
//!   with the faults that it behaves like.
//!
//! # In a test
//!
//! ```
//! use shakedown::contracts::group_advantage::{Baseline, GroupAdvantage, Options, Scale};
//!
//! // REINFORCE without a baseline: the advantage is the reward.
//! shakedown::check::<GroupAdvantage>(|case| case.rewards.clone())
//!     .options(Options { baseline: Baseline::None, scale: Scale::None, ..Options::default() })
//! #   .without_corpora()
//!     .run();
//! ```
//!
//! A component that is wrong makes [`Check::run`] panic with the whole report:
//!
//! ```should_panic
//! # use shakedown::contracts::group_advantage::GroupAdvantage;
//! // The same where GRPO is declared: not zero-sum, not shift-invariant.
//! shakedown::check::<GroupAdvantage>(|case| case.rewards.clone())
//! #   .without_corpora()
//!     .run();
//! ```
//!
//! [`Suite`] makes one listed test of each component, invariant and place, and with
//! `Suite::snapshots` one of what each component gives. [`cases`] gives the cases of a contract to
//! `proptest!`. A component that is no function on host arrays goes through [`check_component`].
//! [`batch`] says how a trainer records a batch that `shakedown check-batch` checks. A contract
//! that we do not have you write yourself: [`own_contract`].
//!
//! # Features
//!
//! `cli` (default): the command. `fuzz` (default): `shakedown fuzz`, with libFuzzer inside, which
//! takes a C++ compiler. `snapshots` (default): `Suite::snapshots`, with insta. `tch`:
//! functions on tensors, with gradients by autograd; links libtorch.
//!
//! # What it does not do
//!
//! It checks components, not training runs, and says nothing about which convention is better.

#![deny(unsafe_code)] // with a reason where C++ is called: `tests/tidy.rs` has the list

pub mod aggregate;
pub mod batch;
pub mod case_file;
pub mod check;
#[cfg(feature = "cli")]
pub mod cli;
pub mod component;
pub mod contract;
pub mod contracts;
pub mod coverage;
pub mod cuts;
mod diagnose;
pub mod draw;
pub mod error;
pub mod fault;
mod finding;
pub mod fuzz;
pub mod grid;
pub mod invariant;
mod journal;
pub mod laws;
pub mod manifest;
pub mod masked;
mod outcomes;
pub mod own_contract;
mod patience;
pub mod pick;
pub mod place;
pub mod process;
pub mod record;
pub mod recorded;
pub mod report;
pub mod scaled;
pub mod shapes;
pub mod shrink;
#[cfg(feature = "snapshots")]
pub mod snapshots;
pub mod stream;
pub mod strings;
mod suite;
pub mod tape;
#[cfg(feature = "tch")]
pub mod tensor;
pub mod text;
pub mod tolerance;
pub mod yaml;

pub use shrink::cases;
pub use suite::{Check, Suite, check, check_component};
