//! Faults of precision: numbers that pass through a format with fewer digits.

use crate::contract::Contract;
use crate::contract::fault::Fault;
use crate::value::place::Dtype;
use crate::value::record::round;

/// All that comes in.
pub fn inputs_in_half_precision<C: Contract>(seen: &'static str) -> Fault<C> {
    Fault::new(
        "inputs-in-half-precision",
        "what comes in is rounded to bf16, or to f16, before it is computed with",
    )
    .seen(seen)
    .on(&[|case, _| round(case, Dtype::Bf16), |case, _| round(case, Dtype::F16)])
}
