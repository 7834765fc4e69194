//! What must hold of `sampling-filter`: the laws that apply, and one file for each of its own.

use ndarray::{Array2, ArrayD, ArrayView1};

use super::oracle::Row;
use super::{Options, SamplingFilter, SamplingFilterCase};
use crate::contract::invariant::Invariant;
use crate::contract::probe::Outcome;
use crate::contract::probe::broken;
use crate::laws;
use crate::numeric::tolerance::apart;
use crate::value::place::Dtype;
use crate::value::text::pair;

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

crate::contract::invariant::invariants! {
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

/// Every probability is what it was before; a token stands where `to` says.
fn unchanged(
    before: &Array2<f64>,
    after: &Array2<f64>,
    allowed: &ArrayD<f64>,
    to: impl Fn(usize) -> usize,
    change: &str,
) -> Outcome {
    for ((row, token), from) in before.indexed_iter() {
        let at = [row, to(token)];
        let (found, allowed) = (after[at], allowed[[row, token]]);
        if apart(found, *from, allowed) {
            let [found, from] = pair(found, *from);
            broken!("{change}, probs{at:?} is {found}, expected {from} ± {allowed:.1e}");
        }
    }
    Ok(())
}
