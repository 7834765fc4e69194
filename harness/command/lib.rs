//! Property-based testing and fuzzing for RL post-training pipelines.
//!
//! shakedown attacks the components of a pipeline (rewards, decoders, advantages,
//! log-probabilities, losses) with adversarial inputs and checks what must hold. What fails is
//! shrunk to the smallest case, compared with known bugs, and kept.
//!
//! # Words
//!
//! - A [contract](author::Contract) is a kind of component: its inputs, outputs, options and
//!   invariants. [`contracts`] has them all.
//! - A [component](author::Component) is one implementation: a Rust function, a function on
//!   tensors, a Python function, a process.
//! - A case is one input. It is generated, or read from a case file.
//! - A [place](place::Place) is a device and a dtype: `cpu/f32`.
//! - An [invariant](author::Invariant) is something that must hold; the oracle is the definition
//!   in plain f64; a [fault](author::Fault) is a known wrong behaviour.
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
//! A test suite needs no default feature: `default-features = false`, and of these what it uses.
//!
//! - `cli` (default): the command. `lint`, a part of it: `check-run`, `check-config`, `check-data`.
//! - `proptest`: [`cases`] for `proptest!`. `snapshots`: `Suite::snapshots`, with insta.
//! - `junit`: JUnit reports. `parquet`: logs and data sets in parquet files. `tokenizer`: lengths
//!   in tokens. `init`: `shakedown init`.
//! - `fuzz`: `shakedown fuzz`, with libFuzzer inside, which takes a C++ compiler.
//! - `full`: all of them.
//!
//! Functions on tensors, with gradients by autograd, are the crate `shakedown-tch`, which links
//! libtorch.
//!
//! # What it does not do
//!
//! It checks components, not training runs, and says nothing about which convention is better.

#![deny(unsafe_code)] // with a reason where C++ is called: `tests/library/tidy.rs` has the list

// What is hidden here is for our own tests and fuzz targets, and may change any day: the public
// doors are below.
#[doc(hidden)]
pub mod attribute;
pub mod door;
pub mod own_contract;
#[cfg(feature = "cli")]
mod render;

pub use door::check::{Check, check, check_component};
#[doc(inline)]
pub use door::fuzz;
#[cfg(feature = "proptest")]
pub use door::strategy::cases;
pub use door::suite::Suite;
#[doc(inline)]
pub use shakedown_contracts as contracts;
pub use shakedown_core::value::error::Error;
#[doc(inline)]
pub use shakedown_core::value::place;
#[doc(hidden)]
pub use shakedown_core::{contract, generate, laws, numeric, value};
#[doc(hidden)]
pub use shakedown_engine as engine;
#[doc(inline)]
pub use shakedown_engine::files::batch;
#[doc(inline)]
pub use shakedown_engine::report;
#[doc(hidden)]
pub use shakedown_engine::{files, host};
#[cfg(feature = "lint")]
#[doc(inline)]
pub use shakedown_lint::report as diagnosis;
#[cfg(feature = "lint")]
#[doc(hidden)]
pub use shakedown_lint::{datasets, rules, runs, settings};
#[doc = include_str!("attribute.md")]
#[doc = include_str!("forms.md")]
pub use shakedown_macros::contract;

/// What those need who write a contract: see [`own_contract`].
pub mod author {
    pub use crate::door::prove::prove;
    #[doc(inline)]
    pub use shakedown_core::author::*;
}
