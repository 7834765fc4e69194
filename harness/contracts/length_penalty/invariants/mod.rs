//! What must hold of `length-penalty`: the laws that apply, and one file for each of its own.

use crate::length_penalty::LengthPenalty;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<LengthPenalty>> {
    let mut all = laws::universal_and(&[("finite", &["division-by-no-buffer"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "length-is-the-span-of-the-mask",
            "factor-not-applied",
            "whole-steps-only",
            "line-bounded",
            "cosine-is-a-line",
            "one-token-too-many",
            "lengths-in-bf16",
        ]),
        laws::row_permutation::law().catching(&["left-in-the-order-by-length"]),
        laws::row_split::law().catching(&["length-of-the-padded-row"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    LengthPenalty;
    never_rises,
    continuous,
    knees,
}
