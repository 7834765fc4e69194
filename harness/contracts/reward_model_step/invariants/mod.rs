//! What must hold of `reward-model-step`: the laws that apply, and one file for each of its own.

use crate::reward_model_step::RewardModelStep;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<RewardModelStep>> {
    let mut all = laws::universal();
    all.extend([
        laws::rows_trained_once::law().catching(&["same-slice-again"]),
        laws::no_gradient_outside_the_mask::law().catching(&[
            "eos-left-out",
            "final-eos-dropped-when-pad-is-eos",
            "end-read-although-pad",
            "score-at-the-padded-end",
            "score-at-the-first-pad",
            "score-at-the-first-token",
            "loss-over-tokens",
        ]),
        laws::no_gradient_on_unknown_prefixes::law().catching(&["pads-seen"]),
    ]);
    all.extend(own());
    all.push(laws::oracle::law().catching(&[
        "sum-for-the-mean",
        "margins-averaged-before-the-loss",
        "sigmoid-left-out",
        "probability-for-its-logarithm",
        "mean-over-completions",
        "margin-added",
        "margin-ignored",
        "margin-of-another-pair",
        "center-ignored",
        "center-of-the-difference",
        "center-summed",
        "center-of-each-score",
        "center-of-the-mean",
        "pairs-across",
        "micro-batches-summed",
        "divided-again-by-micro-batches",
        "only-the-last-micro-batch",
    ]));
    all
}

invariants! {
    RewardModelStep;
    pair_sums_to_zero,
    chosen_rises,
}
