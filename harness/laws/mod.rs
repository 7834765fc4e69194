//! Laws: invariants written once over small capability traits and shared by many contracts.

mod answers;
pub mod deterministic;
pub mod finite;
pub mod gradient;
pub mod in_time;
pub mod oracle;
pub mod pure;
pub mod row_permutation;
pub mod row_split;
pub mod survives;
pub mod total;
pub mod well_formed;

use ndarray::{Array, ArrayD, Axis, Dimension, RemoveAxis};

use crate::contract::Contract;
use crate::invariant::Invariant;
use crate::pick::Pick;
use crate::record::{Record, Value};
use crate::tolerance::apart;

/// The laws that hold of every contract whatsoever, in the order in which they are checked.
pub fn universal<C: Contract>() -> Vec<Invariant<C>> {
    vec![
        total::law().catching(&["raises"]),
        in_time::law().catching(&["hangs"]),
        survives::law().catching(&["dies"]),
        well_formed::law().catching(&["drops-a-row"]),
        finite::law().catching(&["gives-nan"]),
        pure::law().catching(&["changes-its-inputs"]),
        deterministic::law().catching(&["flips"]),
    ]
}

/// Contracts whose inputs and outputs have rows along the first axis.
pub trait Rows: Contract {
    /// The number of rows.
    fn rows(case: &Self::Case) -> usize;

    /// The case of some of its rows, in that order.
    fn take(case: &Self::Case, rows: &[usize]) -> Self::Case;

    /// Whether there are rows that have no influence on each other.
    fn independent(_: &Self::Options) -> bool {
        true
    }

    /// The sets of rows that have no influence on each other.
    fn parts(case: &Self::Case) -> Vec<Vec<usize>>;

    /// An order of the rows that keeps the case valid.
    fn permutation(case: &Self::Case, _: &Self::Options, pick: &mut Pick) -> Vec<usize> {
        pick.shuffled(Self::rows(case))
    }
}

/// Some rows of an array, in that order.
pub fn take_rows<T: Clone, D: Dimension + RemoveAxis>(
    array: &Array<T, D>,
    rows: &[usize],
) -> Array<T, D> {
    array.select(Axis(0), rows)
}

/// The float fields of a record that are present, by name.
pub(crate) fn floats<R: Record>(record: &R) -> Vec<(&'static str, ArrayD<f64>)> {
    record
        .values()
        .into_iter()
        .filter_map(|(name, value)| match value {
            Some(Value::Float(array)) => Some((name, array)),
            _ => None,
        })
        .collect()
}

/// The same without the gradients, which the law `gradient` alone speaks about.
pub(crate) fn outputs<R: Record>(record: &R) -> Vec<(&'static str, ArrayD<f64>)> {
    let mut fields = floats(record);
    fields.retain(|(name, _)| !name.starts_with("grad_"));
    fields
}

/// Two numbers at the same place that are further apart than allowed.
pub struct Difference {
    /// `[1, 0]`.
    pub index: String,
    /// The first number.
    pub left: f64,
    /// The second number.
    pub right: f64,
    /// How far apart they may be.
    pub allowed: f64,
}

/// The first place where two arrays differ by more than allowed; infinitely far is never checked.
pub fn difference(
    left: &ArrayD<f64>,
    right: &ArrayD<f64>,
    allowed: &ArrayD<f64>,
) -> Option<Difference> {
    let places = left.indexed_iter().zip(right).zip(allowed);
    places.into_iter().find(|(((_, left), right), allowed)| apart(**left, **right, **allowed)).map(
        |(((index, left), right), allowed)| Difference {
            index: crate::text::index(&index),
            left: *left,
            right: *right,
            allowed: *allowed,
        },
    )
}
