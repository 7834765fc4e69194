//! The vocabulary of `shakedown`: what contracts are written with. Knows no contract.
//!
//! Everything here is public through the crate `shakedown`: depend on that one.

#![deny(unsafe_code)] // with a reason where C is called: `tests/library/tidy.rs` has the list

#[doc(hidden)]
pub mod contract;
#[doc(hidden)]
pub mod generate;
#[doc(hidden)]
pub mod laws;
#[doc(hidden)]
pub mod numeric;
#[doc(hidden)]
pub mod value;

/// What those need who write a contract.
pub mod author {
    pub use crate::contract::blind::Blind;
    pub use crate::contract::cause::{Cause, Found};
    pub use crate::contract::class::Class;
    pub use crate::contract::component::{Call, Component, Failure, Gradients, Returned};
    pub use crate::contract::cuts::Cuts;
    pub use crate::contract::definition::Definition;
    pub use crate::contract::doc::Doc;
    pub use crate::contract::fault::{Fault, Function};
    pub use crate::contract::from_input::FromInput;
    #[doc(hidden)]
    pub use crate::contract::into_output::Form;
    pub use crate::contract::into_output::IntoOutput;
    pub use crate::contract::invariant::{Invariant, Rule, invariants};
    #[doc(hidden)]
    pub use crate::contract::options::{Drawn, option_name, within};
    pub use crate::contract::options::{
        OptionDoc, Options, RowInfluence, SharedOptions, above, options,
    };
    pub use crate::contract::outcome::{Outcome, Stop, broken, close, near, only, unchanged};
    pub use crate::contract::probe::{Answer, AnyProbe, Probe};
    pub use crate::contract::rows::{self, Masked, Rows, along_axes};
    pub use crate::contract::schema::OptionValue;
    #[doc(hidden)]
    pub use crate::contract::schema::schema_within;
    pub use crate::contract::stage::{Pitfall, Stage};
    pub use crate::contract::{Contract, Parts};
    pub use crate::generate::axes::Axes;
    pub use crate::generate::measure::Measure;
    pub use crate::generate::{completions, draw, masks, pick::Pick, texts};
    pub use crate::laws;
    pub use crate::numeric::terms::term;
    pub use crate::numeric::tolerance::{
        Expected, ExpectedTexts, Number, Tolerance, Wanted, apart,
    };
    pub use crate::numeric::{aggregate, conventions, tape, tolerance};
    pub use crate::value::choice::{Choice, choice};
    pub use crate::value::place::{Dtype, Place};
    #[doc(hidden)]
    pub use crate::value::record::{
        Arrays, Field, Host, Misfit, Slot, Source, Typed, Values, Visitor,
    };
    pub use crate::value::record::{Record, Value, index, record, round, same_bits};
    #[doc(hidden)]
    pub use crate::value::text::{bytes, dashed, one_line};
    pub use crate::value::text::{found_for, number, pair, quoted, rounded};
    #[doc(hidden)]
    pub use crate::value::yaml::inline;
}
