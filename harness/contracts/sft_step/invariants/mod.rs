//! What must hold of `sft-step`: the laws that apply, and one file for each of its own.

use crate::sft_step::SftStep;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<SftStep>> {
    let mut all = laws::universal();
    all.extend([
        laws::rows_trained_once::law().catching(&["same-slice-again"]),
        laws::no_gradient_outside_the_mask::law().catching(&[
            "prompt-trained",
            "padding-trained",
            "mask-one-position-early",
            "labels-shifted-twice",
        ]),
        laws::no_gradient_on_unknown_prefixes::law().catching(&["neighbours-seen"]),
        laws::gradient_sums_to_zero::law().catching(&["gradient-detached-from-the-normaliser"]),
    ]);
    all.extend(own());
    all.push(laws::oracle::law().catching(&[
        "eos-left-out",
        "final-eos-dropped-when-pad-is-eos",
        "first-token-left-out",
        "last-turn-alone",
        "dft-ignored",
        "dft-undeclared",
        "dft-weight-not-detached",
        "untrained-tokens-counted",
        "sequence-mean-called-token-mean",
        "token-mean-called-sequence-mean",
        "mean-of-micro-batch-means",
        "mean-over-the-update",
        "micro-batches-summed",
        "divided-again-by-micro-batches",
    ]));
    all
}

invariants! {
    SftStep;
    trained_tokens_rise,
}
