//! What must hold of `token-entropy`: the laws that apply, and one file for each of its own.

use ndarray::{Array2, ArrayD};

use super::TokenEntropy;
use crate::contract::invariant::Invariant;
use crate::contract::probe::Outcome;
use crate::contract::probe::broken;
use crate::laws;
use crate::numeric::tolerance::apart;
use crate::value::text::pair;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<TokenEntropy>> {
    let mut all =
        laws::universal_and(&[("finite", &["maximum-not-subtracted", "minus-infinity-gives-nan"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "temperature-not-applied",
            "temperature-multiplied",
            "temperature-applied-twice",
            "epsilon-in-the-logarithm",
            "logits-in-half-precision",
        ]),
        laws::gradient::law().catching(&[
            "gradient-zero",
            "gradient-without-temperature",
            "normaliser-detached",
        ]),
        laws::row_permutation::law().catching(&["rows-left-in-sorted-order"]),
        laws::row_split::law().catching(&["rows-left-in-sorted-order"]),
    ]);
    all.extend(own());
    all
}

crate::contract::invariant::invariants! {
    TokenEntropy;
    bounded,
    uniform,
    near_one_hot,
    shift_invariant,
    vocabulary_permutation,
    position_local,
    minus_infinity_removes_a_token,
    gradient_sums_to_zero,
}

/// Every entropy is what it was before, wherever `same` says so.
fn unchanged(
    before: &Array2<f64>,
    after: &Array2<f64>,
    allowed: &ArrayD<f64>,
    same: impl Fn(usize, usize) -> bool,
    change: &str,
) -> Outcome {
    for ((row, column), from) in before.indexed_iter() {
        let (to, allowed) = (after[[row, column]], allowed[[row, column]]);
        if same(row, column) && apart(to, *from, allowed) {
            let [to, from] = pair(to, *from);
            broken!("{change}, entropy[{row}, {column}] is {to}, expected {from} ± {allowed:.1e}");
        }
    }
    Ok(())
}
