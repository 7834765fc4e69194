//! What must hold of `batch-collation`: the laws that apply, and one file for each of its own.

use ndarray::Array2;

use crate::batch_collation::oracle::Places;
use crate::batch_collation::{
    BatchCollation, BatchCollationCase, BatchCollationOutput, Options, Row, Truncate,
    rows as rows_of,
};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<BatchCollation>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "last-columns-kept",
            "response-mask-sliced-twice",
            "padded-on-the-other-side",
            "boundary-stays",
        ]),
        laws::refuses::law(|options: &Options| {
            options.truncate == Truncate::Refuse && options.max_length.is_some()
        })
        .catching(&["filled-up-and-not-cut"]),
        laws::row_permutation::law().catching(&["sorted-by-length", "boundary-of-the-first-row"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    BatchCollation;
    width,
    attention,
    completion_tokens,
    labels,
    positions,
    pad_is_a_token,
    renaming,
    row_split,
    wide_inputs,
    cut_beforehand,
}

/// Breaks the invariant where a number is not the one that is expected; `why` says for what reason
/// it is. Whole numbers are not rounded.
fn expect(
    name: &str,
    array: &Array2<f64>,
    at: (usize, usize),
    expected: f64,
    why: impl FnOnce() -> String,
) -> Outcome {
    let found = array[at];
    if found != expected {
        let [found, expected] = [found, expected].map(number);
        broken!("{name}[{}, {}] is {found}, expected {expected}: {}", at.0, at.1, why());
    }
    Ok(())
}

/// Where the tokens of the case stand; vacuous where an output has another width, of which `width`
/// speaks.
fn placed(
    case: &BatchCollationCase,
    options: &Options,
    output: &BatchCollationOutput,
) -> Result<Places, Stop> {
    let places = Places::of(case, options);
    let wide = output.given().iter().all(|(_, array)| array.ncols() == places.width);
    if wide { Ok(places) } else { Err(Stop::Vacuous) }
}

/// The outputs of one row at its tokens, by name.
fn of_row(
    output: &BatchCollationOutput,
    places: &Places,
    row: usize,
    at: usize,
) -> Vec<(&'static str, Vec<f64>)> {
    let from = places.starts[row];
    let columns = from..from + places.rows[row].length();
    let given = output.given().into_iter();
    given.map(|(name, array)| (name, columns.clone().map(|to| array[[at, to]]).collect())).collect()
}

/// Breaks the invariant where the tokens of a row have other numbers than before.
fn expect_same(
    before: &[(&'static str, Vec<f64>)],
    after: &[(&'static str, Vec<f64>)],
    told: &str,
) -> Outcome {
    for ((name, before), (other, after)) in before.iter().zip(after) {
        if name == other && before != after {
            broken!("{told} has {name} {after:?}, expected {before:?} as before");
        }
    }
    Ok(())
}
