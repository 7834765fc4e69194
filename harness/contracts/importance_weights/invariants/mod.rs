//! What must hold of `importance-weights`: the laws that apply, and one file for each of its own.

use ndarray::Array2;

use crate::importance_weights::oracle::{Token, judged};
use crate::importance_weights::{
    ImportanceWeights, ImportanceWeightsCase, Normalize, Options, Select,
};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<ImportanceWeights>> {
    let mut all = laws::universal_and(&[(
        "finite",
        &[
            "dropped-by-a-product",
            "masked-after-the-arithmetic",
            "mean-of-nothing-divides",
            "no-token-gives-nan",
            "quotient-of-probabilities",
        ],
    )]);
    all.extend([
        laws::oracle::law().catching(&[
            "linearised",
            "log-ratio-as-the-weight",
            "exponent-scaled",
            "power-of-two",
            "sampler-left-out",
            "policy-left-out",
            "gaps-added",
            "difference-of-probabilities",
            "gap-is-absolute",
            "largest-for-the-row",
            "clamped-although-not-declared",
            "raised-although-not-declared",
            "capped-at-one",
            "clamp-is-symmetric",
            "dropped-for-clamped",
            "clamped-to-one",
            "log-ratio-clamped-although-not-declared",
            "log-ratio-clamp-left-out-of-the-bounds",
            "veto-of-the-clamped-ratio",
            "select-ignored",
            "kept-and-dropped-exchanged",
            "selected-although-not-declared",
            "veto-on-both-sides",
            "drift-ignored",
            "drift-reversed",
            "drift-of-the-sum",
            "advantages-of-the-next-row",
            "token-mean-for-row-means",
            "mean-of-the-kept",
            "mean-over-padding",
            "gaps-in-half-precision",
            "weights-in-half-precision",
            "masked-weights-not-zeroed",
            "keep-under-the-mask",
            "weights-of-the-next-token",
            "last-token-left-out",
            "one-off-in-the-length",
            "column-for-the-row",
            "quotient-of-logarithms",
            "clamped-before-the-row",
            "mean-of-ratios-decides",
            "row-needs-every-token",
            "clamped-for-dropped",
            "mismatch-is-weighted",
            "mismatch-of-the-row-exponent",
            "clip-fraction-of-row-shares",
            "certain-tokens-masked",
            "veto-reversed",
            "veto-of-the-probability",
        ]),
        laws::row_permutation::law().catching(&[
            "mismatch-of-the-first-row",
            "sampler-of-the-first-row",
            "mask-transposed",
        ]),
        laws::row_split::law().catching(&[
            "batch-for-the-row",
            "veto-of-the-batch",
            "one-ratio-drops-the-batch",
            "mask-of-the-first-row",
            "sampler-of-another-row",
            "weights-of-the-next-row",
            "normalized-although-not-declared",
        ]),
        laws::padding::law().catching(&[
            "divided-by-the-width",
            "selection-divides-by-the-width",
            "drift-divides-by-the-width",
            "mean-over-padding",
            "pads-weigh-one-in-the-mean",
            "mismatch-over-padding",
            "clip-fraction-over-padding",
            "masked-counts-as-dropped",
        ]),
        laws::masked_poison::law().catching(&[
            "mask-ignored",
            "dropped-for-masked-tokens",
            "one-token-more",
        ]),
        laws::refuses::law(|options: &Options| options.empty_mask == EmptyMask::Refuse)
            .catching(&["epsilon-in-the-denominator"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    ImportanceWeights;
    no_gradient,
    on_policy,
    direction,
    enumeration,
    constant_gap,
    shift_invariant,
    position_local,
    row_constant,
    rows_share_a_fate,
    within_bounds,
    within_the_log_ratio_clamp,
    within_selection,
    vetoed,
    drift_sign,
    rejected,
    keep_is_a_flag,
    mean_one,
    empty_row,
    clip_fraction,
    mismatch_kl,
}

/// The case with other log-ratios at the tokens that count, the larger logarithm of each being 0.
/// They are those of whole eighths, which every dtype holds.
fn with_gaps(
    case: &ImportanceWeightsCase,
    gap: impl Fn((usize, usize)) -> f64,
) -> ImportanceWeightsCase {
    let mut changed = case.clone();
    for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        let gap = gap(at);
        changed.log_probs[at] = gap.min(0.0);
        changed.sampler_log_probs[at] = (-gap).min(0.0);
    }
    changed
}

/// The tokens that count, as the definition judges them.
fn tokens(probe: &Probe<'_, ImportanceWeights>, case: &ImportanceWeightsCase) -> Vec<Token> {
    judged(case, probe.options, probe.place.dtype).concat()
}

/// Whether nothing is dropped and nothing divided: a weight is a function of its level alone.
fn is_plain(options: &Options) -> bool {
    options.select == Select::None
        && options.veto.is_none()
        && options.drift.is_none()
        && options.normalize == Normalize::None
}

/// Whether the ratio of 1 is within the clamp.
fn clamp_holds_one(options: &Options) -> bool {
    options.clamp_low.is_none_or(|low| low <= 1.0)
        && options.clamp_high.is_none_or(|high| high >= 1.0)
}

/// The rows of a case that have a token.
fn filled_rows(mask: &Array2<bool>) -> Vec<usize> {
    (0..mask.nrows()).filter(|row| mask.row(*row).iter().any(|kept| *kept)).collect()
}
