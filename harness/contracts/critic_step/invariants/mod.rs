//! What must hold of `critic-step`: the laws that apply, and one file for each of its own.

use crate::critic_step::CriticStep;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<CriticStep>> {
    let mut all = laws::universal();
    all.extend([
        laws::rows_trained_once::law().catching(&["same-slice-again"]),
        laws::no_gradient_outside_the_mask::law().catching(&[
            "values-one-step-late",
            "padding-trained",
            "observations-trained",
        ]),
        laws::no_gradient_on_unknown_prefixes::law().catching(&["values-one-step-early"]),
    ]);
    all.extend(own());
    all.push(laws::oracle::law().catching(&[
        "last-token-left-out",
        "first-token-left-out",
        "score-at-the-first-token",
        "score-in-the-last-column",
        "score-at-every-token",
        "score-before-the-last-token",
        "score-of-another-row",
        "kl-left-out",
        "penalty-added",
        "beta-twice",
        "all-at-the-end",
        "kl-subtracted-twice",
        "returns-whitened",
        "returns-of-whitened-advantages",
        "returns-from-stale-advantages",
        "rewards-one-step-early",
        "lambda-not-applied",
        "carry-left-out",
        "gamma-not-applied",
        "next-value-not-discounted",
        "value-not-subtracted",
        "recursion-from-the-start",
        "carry-crosses-rows",
        "reset-at-observation",
        "time-passes-at-masked-tokens",
        "masked-tokens-skipped",
        "old-values-recomputed",
        "returns-recomputed",
        "values-of-the-first-generation",
        "gradient-through-the-targets",
        "half-factor-lost",
        "factor-applied-twice",
        "smaller-error",
        "clip-without-effect",
        "clipped-error-only",
        "clip-around-the-return",
        "clip-although-null",
        "gradient-through-the-clip",
        "absolute-error",
        "returns-of-another-row",
        "old-values-of-another-row",
        "row-means-for-the-token-mean",
        "token-mean-for-row-means",
        "sum-for-mean",
        "mean-over-padding",
        "mean-of-micro-batch-means",
        "mean-over-the-update",
        "micro-batches-summed",
        "divided-again-by-micro-batches",
        "only-the-last-micro-batch",
    ]));
    all
}

invariants! {
    CriticStep;
    content_critic,
    towards_the_returns,
}
