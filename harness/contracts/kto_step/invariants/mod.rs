//! What must hold of `kto-step`: the laws that apply, and one file for each of its own.

use crate::kto_step::KtoStep;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<KtoStep>> {
    let mut all = laws::universal();
    all.extend([
        laws::rows_trained_once::law().catching(&["same-slice-again"]),
        laws::no_gradient_outside_the_mask::law().catching(&["padding-trained"]),
        laws::no_gradient_on_unknown_prefixes::law().catching(&["prompt-trained"]),
        laws::gradient_sums_to_zero::law().catching(&["gradient-detached-from-the-normaliser"]),
        laws::reference_unchanged::law(|_| true)
            .catching(&["reference-in-training-mode", "reference-trained"]),
    ]);
    all.extend(own());
    all.push(laws::oracle::law().catching(&[
        "eos-left-out",
        "final-eos-dropped-when-pad-is-eos",
        "weights-swapped",
        "weights-ignored",
        "divided-by-the-weights",
        "averaged-by-label",
        "kl-not-clamped",
        "kl-clamped-before-the-mean",
        "kl-of-matched-pairs",
        "kl-completions-reversed",
        "kl-completions-of-the-update",
        "kl-of-each-row",
        "kl-of-one-row",
        "kl-summed",
        "kl-averaged-over-tokens",
        "kl-of-one-label",
        "kl-reversed",
        "kl-ignored",
        "kl-added",
        "logarithm-of-the-sigmoid",
        "sigmoid-left-out",
        "sum-for-the-mean",
        "averages-for-sums",
        "beta-not-applied",
        "beta-applied-twice",
        "reference-is-the-policy",
        "reference-ignored",
        "micro-batches-summed",
        "divided-again-by-micro-batches",
    ]));
    all
}

invariants! {
    KtoStep;
    kl_is_detached,
    desirable_rises,
}
