//! How to write a contract of your own, outside this repository.
//!
//! A contract is one type that implements [`Definition`](shakedown_core::author::Definition), which names
//! its types, and [`Contract`](shakedown_core::author::Contract). Everything else works with it as with
//! ours: [`check`](crate::check()), [`Suite::with`](crate::Suite::with), [`cases`](crate::cases())
//! for `proptest!`, [`Check::fuzz`](crate::Check::fuzz) for a fuzz target, findings and regressions
//! in `corpora/<contract>`. The command and its manifests know the contracts of
//! [`contracts::IDS`](shakedown_contracts::IDS) only: components of your own contract are functions in
//! a test, or processes through [`check_component`](crate::check_component).
//!
//! # What to write
//!
//! All that you need is in [`author`](shakedown_core::author).
//!
//! 1. The case and the output, with [`record!`](shakedown_core::author::record): arrays by name. `From` for
//!    what a component may return.
//! 2. The options, with [`options!`](shakedown_core::author::options): every convention in which honest
//!    implementations differ. What is no option is part of the definition.
//! 3. The [axes](shakedown_core::author::Axes) of the arrays: shapes and the shrinker follow from them.
//! 4. `oracle`: the definition, slow and obvious, in f64. Each number has a scale: the sum of the
//!    magnitudes that were added or cancelled to make it. The bound follows from it; there is no
//!    tolerance to choose.
//! 5. The [parts](shakedown_core::author::Parts). `draw`, `corners` and `valid`: cases bent towards the
//!    places where such code goes wrong. `reference`: the definition as a person would write it. It
//!    has to pass.
//! 6. `faults`: what real implementations got wrong. They name what a finding behaves like, and
//!    prove that the invariants catch anything.
//! 7. `invariants`: the [universal laws](shakedown_core::author::laws::universal), those of
//!    [`laws`](shakedown_core::author::laws) that apply, and your own. One that needs more room stands in a
//!    file of its own, listed with [`invariants!`](shakedown_core::author::invariants).
//! 8. A test that calls [`prove`](shakedown_core::author::prove).
//!
//! The macros and the traits need `arbitrary` 1, `ndarray` 0.17 and `serde` 1 with `derive` among
//! your dependencies.
//!
//! # The whole of it
//!
//! A test of this repository that uses only what is public: the contract, its proof, and components
//! that it checks.
//!
//! ```ignore
#![doc = include_str!("../../tests/library/own_contract.rs")]
//! ```
