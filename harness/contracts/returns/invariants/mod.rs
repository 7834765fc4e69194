//! What must hold of `returns`: the laws that apply, and one file for each of its own.

use crate::returns::Returns;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<Returns>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "inputs-in-half-precision",
            "gamma-not-applied",
            "masked-output-not-zeroed",
        ]),
        laws::row_permutation::law().catching(&[
            "carry-crosses-rows",
            "mask-transposed",
            "mask-of-the-first-row",
        ]),
        laws::row_split::law().catching(&["carry-crosses-rows"]),
        laws::padding::law().catching(&["pad-rewards-in-the-return"]),
        laws::masked_poison::law()
            .catching(&["pad-rewards-in-the-return", "masked-penalty-in-the-return"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    Returns;
    recursion,
    causal,
    linear,
    compact_equals_expanded,
}
