//! What must hold of `grpo-step`: the laws that apply, and one file for each of its own.

use crate::grpo_step::{GrpoStep, Options};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<GrpoStep>> {
    let mut all = laws::universal();
    all.extend([
        laws::rows_trained_once::law().catching(&["same-slice-again", "generation-never-renewed"]),
        laws::no_gradient_outside_the_mask::law()
            .catching(&["padding-trained", "unfinished-rows-kept"]),
        laws::no_gradient_on_unknown_prefixes::law().catching(&["attention-mask-forgotten"]),
        laws::gradient_sums_to_zero::law().catching(&["gradient-detached-from-the-normaliser"]),
        laws::reference_unchanged::law(|options: &Options| options.beta > 0.0)
            .catching(&["reference-in-training-mode", "reference-trained"]),
    ]);
    all.extend(own());
    all.push(laws::oracle::law().catching(&[
        "advantages-stay-behind",
        "old-log-probs-stay-behind",
        "eos-left-out",
        "only-one-eos-id",
        "final-eos-dropped-when-pad-is-eos",
        "unfinished-rows-dropped",
        "weights-lost",
        "mean-for-sum",
        "first-function-only",
        "batch-mean-as-baseline",
        "batch-deviation-for-the-group-s",
        "group-deviation-for-the-batch-s",
        "not-divided",
        "divided-although-not-declared",
        "biased-for-unbiased-deviation",
        "epsilon-of-another-size",
        "own-reward-in-the-baseline",
        "own-reward-left-out-of-the-baseline",
        "whitened-again-over-the-batch",
        "negative-advantages-dropped",
        "advantages-clipped",
        "rewards-truncated-to-integers",
        "temperature-ignored",
        "temperature-not-applied-to-the-policy",
        "temperature-not-applied-to-the-reference",
        "gradient-without-temperature",
        "tokens-of-another-row",
        "old-log-probs-are-current",
        "ratio-inverted",
        "gradient-without-the-ratio",
        "clipping-ignored",
        "lower-bound-ignored",
        "upper-bound-ignored",
        "clip-bounds-swapped",
        "one-range-for-both-bounds",
        "minimum-for-maximum",
        "clipped-tokens-keep-their-gradient",
        "dual-clip-ignored",
        "dual-clip-undeclared",
        "sequence-ratio-for-token",
        "token-ratio-for-sequence",
        "sequence-mean-called-token-mean",
        "norm-by-padded-width",
        "empty-rows-skipped",
        "mask-one-position-early",
        "first-token-left-out",
        "advantages-normalised-again",
        "kl-term-subtracted",
        "kl-coefficient-forced-to-zero",
        "beta-applied-twice",
        "kl-direction-reversed",
        "kl-estimator-mistaken",
        "kl-of-the-old-policy",
        "kl-not-weighted",
        "kl-weighted-undeclared",
        "reference-is-the-policy",
        "mean-log-prob-for-the-sum",
        "penalty-over-padding",
        "penalty-is-a-mean",
        "penalty-added",
        "mean-of-micro-batch-means",
        "mean-over-the-update",
        "mean-over-the-generation",
        "micro-batches-summed",
        "divided-again-by-micro-batches",
    ]));
    all
}

invariants! {
    GrpoStep;
    no_signal_no_update,
    better_completions_rise,
    scored_once,
}
