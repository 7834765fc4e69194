//! What must hold of `whiten`: the laws that apply, and one file for each of its own.

use crate::whiten::{Options, Whiten, WhitenCase, is_few, sets};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<Whiten>> {
    let mut all = laws::universal_and(&[(
        "finite",
        &[
            "one-token-unbiased-deviation",
            "epsilon-missing",
            "variance-of-squares-unguarded",
            "masked-after-the-arithmetic",
        ],
    )]);
    all.extend([
        laws::oracle::law().catching(&[
            "pads-not-zeroed-again",
            "epsilon-outside-the-root",
            "epsilon-clamped-for-added",
            "rows-by-themselves",
            "last-token-left-out",
            "first-token-left-out",
        ]),
        laws::row_permutation::law().catching(&[
            "statistics-per-shard",
            "mask-transposed",
            "mask-of-the-first-row",
        ]),
        laws::row_split::law().catching(&["batch-for-row"]),
        laws::padding::law().catching(&["statistics-over-padding"]),
        laws::masked_poison::law().catching(&["statistics-over-padding"]),
        laws::refuses::law(|options: &Options| options.empty_mask == EmptyMask::Refuse)
            .catching(&["biased-for-unbiased-variance"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    Whiten;
    mean,
    variance,
    constant,
    affine,
    order_preserved,
    shift_invariant,
    scales_with_the_values,
    too_few_tokens,
}

/// A set of tokens: their places and values.
type Set = (Vec<(usize, usize)>, Vec<f64>);

/// The sets that have enough tokens for a deviation.
fn whole_sets(case: &WhitenCase, options: &Options) -> Result<Vec<Set>, Stop> {
    let whole: Vec<Set> = sets(case, options)
        .into_iter()
        .filter(|set| !is_few(set.len(), options) && set.len() > 1)
        .map(|set| {
            let values = set.iter().map(|at| case.values[*at]).collect();
            (set, values)
        })
        .collect();
    if whole.is_empty() { Err(Stop::Vacuous) } else { Ok(whole) }
}
