//! What must hold of `token-entropy`: the laws that apply, and one file for each of its own.

use crate::token_entropy::TokenEntropy;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<TokenEntropy>> {
    let mut all =
        laws::universal_and(&[("finite", &["maximum-not-subtracted", "minus-infinity-gives-nan"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "temperature-not-applied",
            "temperature-multiplied",
            "temperature-applied-twice",
            "epsilon-in-the-logarithm",
            "logits-in-half-precision",
        ]),
        laws::gradient::law().catching(&[
            "gradient-zero",
            "gradient-without-temperature",
            "normaliser-detached",
        ]),
        laws::row_permutation::law().catching(&["rows-left-in-sorted-order"]),
        laws::row_split::law().catching(&["rows-left-in-sorted-order"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    TokenEntropy;
    bounded,
    uniform,
    near_one_hot,
    shift_invariant,
    vocabulary_permutation,
    position_local,
    minus_infinity_removes_a_token,
    gradient_sums_to_zero,
}
