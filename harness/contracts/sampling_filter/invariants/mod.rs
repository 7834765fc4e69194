//! What must hold of `sampling-filter`: the laws that apply, and one file for each of its own.

use ndarray::{Array2, ArrayView1};

use crate::sampling_filter::oracle::Row;
use crate::sampling_filter::{Options, SamplingFilter, SamplingFilterCase};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<SamplingFilter>> {
    let mut all = laws::universal_and(&[(
        "finite",
        &["maximum-not-subtracted", "minus-infinity-gives-nan", "top-p-zero-empties-the-support"],
    )]);
    all.extend([
        laws::oracle::law().catching(&[
            "filtered-but-not-renormalised",
            "raw-probabilities-returned",
            "temperature-not-applied",
            "temperature-multiplied",
            "temperature-applied-twice",
            "temperature-after-the-filters",
            "temperature-before-the-filters",
            "logits-in-half-precision",
        ]),
        laws::row_permutation::law()
            .catching(&["rows-left-in-sorted-order", "threshold-of-the-first-row"]),
        laws::row_split::law().catching(&[
            "rows-left-in-sorted-order",
            "threshold-of-the-first-row",
            "min-p-of-the-batch-maximum",
            "softmax-over-the-rows",
        ]),
    ]);
    all.extend(own());
    all
}

invariants! {
    SamplingFilter;
    sums_to_one,
    within_the_support,
    argmax_survives,
    kept_set,
    top_k_count,
    smallest_nucleus,
    min_p_threshold,
    kept_log_ratios,
    below_the_kth,
    plain_softmax,
    greedy,
    shift_invariant,
    vocabulary_permutation,
    units_of_the_temperature,
    temperature_after_the_filters,
}

/// The rows of a case as the definition sees them, each with what the component gave for it.
fn rows<'a>(
    case: &'a SamplingFilterCase,
    probs: &'a Array2<f64>,
    options: &'a Options,
    dtype: Dtype,
) -> impl Iterator<Item = (usize, Row, ArrayView1<'a, f64>)> {
    let rows = case.logits.rows().into_iter().zip(probs.rows()).enumerate();
    rows.map(move |(row, (logits, probs))| (row, Row::of(logits, options, dtype), probs))
}

/// How many tokens of a row, in its order, are likely enough to be seen if they are kept: the
/// others may be 0 in the dtype.
fn seen(row: &Row, dtype: Dtype) -> usize {
    let least = 2.0 * dtype.min_positive().max(1e-30);
    (0..row.size()).take_while(|place| row.probability(*place, row.size()) > least).count()
}
