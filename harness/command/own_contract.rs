//! How to write a contract of your own, outside this repository.
//!
//! A contract is one type that implements [`Definition`](crate::author::Definition), which names
//! its types, and [`Contract`](crate::author::Contract). Everything else works with it as with
//! ours: [`check`](crate::check()), [`Suite::with`](crate::Suite::with), [`cases`](crate::cases())
//! for `proptest!`, [`Check::fuzz`](crate::Check::fuzz) for a fuzz target, findings and regressions
//! in `corpora/<contract>`. The command and its manifests know the contracts of
//! [`contracts::IDS`](crate::contracts::IDS) only: components of your own contract are functions in
//! a test, or processes through [`check_component`](crate::check_component).
//!
//! # What to write
//!
//! All that you need is in [`author`](crate::author).
//!
//! 1. The case and the output, with [`record!`](crate::author::record): arrays by name. `From` for
//!    what a component may return.
//! 2. The options, with [`options!`](crate::author::options): every convention in which honest
//!    implementations differ. What is no option is part of the definition.
//! 3. The [axes](crate::author::Axes) of the arrays: shapes and the shrinker follow from them.
//! 4. `oracle`: the definition, slow and obvious, in f64. Each number has a scale: the sum of the
//!    magnitudes that were added or cancelled to make it. The bound follows from it; there is no
//!    tolerance to choose.
//! 5. The [parts](crate::author::Parts). `draw`, `corners` and `valid`: cases bent towards the
//!    places where such code goes wrong. `reference`: the definition as a person would write it. It
//!    has to pass.
//! 6. `faults`: what real implementations got wrong. They name what a finding behaves like, and
//!    prove that the invariants catch anything.
//! 7. `invariants`: the [universal laws](crate::author::laws::universal), those of
//!    [`laws`](crate::author::laws) that apply, and your own. One that needs more room stands in a
//!    file of its own, listed with [`invariants!`](crate::author::invariants).
//! 8. A test that calls [`prove`](crate::author::prove).
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
