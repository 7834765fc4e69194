//! What must hold of `preference-step`: the laws that apply, and one file for each of its own.

use crate::preference_step::{NllOver, Options, PreferenceStep};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<PreferenceStep>> {
    let mut all = laws::universal();
    all.extend([
        laws::rows_trained_once::law().catching(&["same-slice-again"]),
        laws::no_gradient_outside_the_mask::law()
            .catching(&["padding-trained", "rejected-half-unmasked"]),
        laws::no_gradient_on_unknown_prefixes::law()
            .under(|options: &Options| {
                options.nll_weight == 0.0 || options.nll_over == NllOver::Completion
            })
            .catching(&["neighbours-seen", "nll-of-prompts"]),
        laws::gradient_sums_to_zero::law().catching(&["gradient-detached-from-the-normaliser"]),
        laws::reference_unchanged::law(Options::uses_reference)
            .catching(&["reference-in-training-mode", "reference-trained"]),
    ]);
    all.extend(own());
    all.push(laws::oracle::law().catching(&[
        "eos-left-out",
        "final-eos-dropped-when-pad-is-eos",
        "chosen-and-rejected-inputs-swapped",
        "reference-ignored",
        "reference-added",
        "beta-not-applied",
        "beta-applied-twice",
        "rejected-side-detached",
        "sum-for-the-mean",
        "label-smoothing-ignored",
        "label-smoothing-on-the-wrong-side",
        "robust-not-normalised",
        "margin-added",
        "margin-ignored",
        "margin-scaled-by-beta",
        "hinge-not-clamped",
        "ipo-target-doubled",
        "ipo-of-the-scaled-margin",
        "sums-for-averages",
        "lengths-swapped",
        "ipo-on-sums",
        "ipo-target",
        "nll-left-out",
        "nll-weight-ignored",
        "nll-of-the-rejected-side",
        "nll-of-both-sides",
        "nll-averaged-otherwise",
        "alpha-ignored",
        "alpha-of-the-other-sign",
        "odds-without-the-complement",
        "gamma-added",
        "nca-weights",
        "bco-rejected-side-left-out",
        "sppo-target",
        "apo-zero-for-down",
        "apo-down-for-zero",
        "exo-forward",
        "aot-not-sorted",
        "reference-is-the-policy",
        "pairs-across",
        "micro-batches-summed",
        "divided-again-by-micro-batches",
    ]));
    all
}

invariants! {
    PreferenceStep;
    equal_completions_cancel,
    chosen_rises,
}
