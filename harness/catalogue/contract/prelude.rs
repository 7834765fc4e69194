//! What the files of a contract's invariants import: `use crate::contract::prelude::*;`.

pub(crate) use crate::contract::Contract;
pub(crate) use crate::contract::component::Gradients;
pub(crate) use crate::contract::invariant::{Invariant, Rule, invariants};
pub(crate) use crate::contract::outcome::{Outcome, Stop, broken, close, near, only, unchanged};
pub(crate) use crate::contract::probe::Probe;
pub(crate) use crate::contract::rows::{self, Rows};
pub(crate) use crate::contract::stage::Pitfall;
pub(crate) use crate::numeric::aggregate::Aggregate;
pub(crate) use crate::numeric::conventions::{EmptyMask, EmptyRows, MaskedTokens, MaskedValues};
pub(crate) use crate::numeric::tolerance::{Expected, Number, apart};
pub(crate) use crate::value::place::Dtype;
pub(crate) use crate::value::record::{index, same_bits};
pub(crate) use crate::value::text::{found_for, number, pair, quoted, rounded};
