//! What the files of a contract's invariants import: `use shakedown_core::contract::prelude::*;`.

pub use crate::contract::Contract;
pub use crate::contract::component::Gradients;
pub use crate::contract::invariant::{Invariant, Rule, invariants};
pub use crate::contract::outcome::{Outcome, Stop, broken, close, near, only, unchanged};
pub use crate::contract::probe::Probe;
pub use crate::contract::rows::{self, Rows};
pub use crate::contract::stage::Pitfall;
pub use crate::numeric::aggregate::Aggregate;
pub use crate::numeric::conventions::{EmptyMask, EmptyRows, MaskedTokens, MaskedValues};
pub use crate::numeric::tolerance::{Expected, Number, apart};
pub use crate::value::place::Dtype;
pub use crate::value::record::{index, same_bits};
pub use crate::value::text::{found_for, number, pair, quoted, rounded};
