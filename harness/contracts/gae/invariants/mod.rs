//! What must hold of `gae`: the laws that apply, and one file for each of its own.

use crate::gae::{Gae, GaeCase, Options};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<Gae>> {
    let mut all = laws::universal_and(&[("finite", &["one-token-unbiased-deviation"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "inputs-in-half-precision",
            "gamma-not-applied",
            "epsilon-beside-the-root",
            "masked-output-not-zeroed",
            "whitened-unasked",
            "masked-tokens-skipped",
            "value-not-subtracted",
        ]),
        laws::row_permutation::law().catching(&[
            "carry-crosses-rows",
            "mask-applied-before-unsorting",
            "mask-transposed",
            "mask-of-the-first-row",
        ]),
        laws::row_split::law().catching(&["carry-crosses-rows", "whitened-unasked"]),
        laws::padding::law().catching(&["pad-value-as-the-next", "whitened-over-padding"]),
        laws::masked_poison::law().catching(&["pad-value-as-the-next"]),
        laws::refuses::law(|options: &Options| {
            options.whiten && options.empty_mask == EmptyMask::Refuse
        })
        .catching(&["whitened-with-ddof-0"]),
    ]);
    all.extend(own());
    all
}

/// The unmasked tokens of each row, by column.
fn tokens(case: &GaeCase) -> Vec<Vec<usize>> {
    let columns =
        |row: usize| (0..case.mask.ncols()).filter(|token| case.mask[[row, *token]]).collect();
    (0..case.mask.nrows()).map(columns).collect()
}

invariants! {
    Gae;
    row_end,
    recursion,
    td_error,
    discounted_return,
    exact_values,
    returns_minus_values,
    causal,
    linear,
    compact_equals_expanded,
    unit_scale,
}
