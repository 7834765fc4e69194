//! What must hold of `token-decoder`: the laws that apply, and one file for each of its own.

use crate::token_decoder::TokenDecoder;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<TokenDecoder>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "special-tokens-kept",
            "special-tokens-lost",
            "only-pads-skipped",
            "id-zero-skipped",
            "pieces-for-their-bytes",
        ]),
        laws::row_permutation::law().catching(&["length-of-the-first-row"]),
        laws::row_split::law().catching(&["length-of-the-first-row"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    TokenDecoder;
    byte_for_byte,
    concatenation,
    padding,
    special_tokens,
    cut_character,
}
