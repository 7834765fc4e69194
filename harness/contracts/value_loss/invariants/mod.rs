//! What must hold of `value-loss`: the laws that apply, and one file for each of its own.

use crate::value_loss::{Options, ValueLoss, ValueLossCase};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<ValueLoss>> {
    let mut all =
        laws::universal_and(&[("finite", &["masked-after-the-arithmetic", "no-token-gives-nan"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "inputs-in-half-precision",
            "half-factor-lost",
            "smaller-error",
            "clipped-error-only",
            "clip-around-the-return",
            "clip-relative-to-the-old-value",
            "absolute-error",
            "mean-over-padding",
            "last-token-left-out",
            "first-token-left-out",
        ]),
        laws::gradient::law().catching(&[
            "half-factor-lost",
            "values-detached",
            "gradient-through-the-clip",
            "padding-in-the-loss",
        ]),
        laws::row_permutation::law().catching(&[
            "returns-left-in-sorted-order",
            "mask-transposed",
            "mask-of-the-first-row",
        ]),
        laws::padding::law().catching(&["normalised-by-the-width", "mean-over-padding"]),
        laws::masked_poison::law().catching(&["padding-in-the-loss"]),
        laws::refuses::law(|options: &Options| options.empty_mask == EmptyMask::Refuse)
            .catching(&["epsilon-in-the-denominator"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    ValueLoss;
    zero_at_the_target,
    not_below_the_plain_error,
    constant_error,
    shift_invariant,
    even,
    old_values_without_a_clip,
    gradient_where_it_is_held,
    clip_fraction,
}

/// The case with other numbers at the tokens that count: values, old values, returns.
fn mapped(case: &ValueLossCase, to: impl Fn(f64, f64, f64) -> (f64, f64, f64)) -> ValueLossCase {
    let mut changed = case.clone();
    for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        let token = to(case.values[at], case.old_values[at], case.returns[at]);
        (changed.values[at], changed.old_values[at], changed.returns[at]) = token;
    }
    changed
}
