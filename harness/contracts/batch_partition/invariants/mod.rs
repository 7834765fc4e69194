//! What must hold of `batch-partition`: the laws that apply, and one file for each of its own.

use std::collections::BTreeMap;

use crate::batch_partition::{BatchPartition, Mode, Options, Oversized};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<BatchPartition>> {
    let mut all = laws::universal_and(&[(
        "does-not-raise",
        &["multiple-never-reached", "full-row-refused", "refuses-a-remainder"],
    )]);
    let refused =
        |options: &Options| options.mode == Mode::Count || options.oversized == Oversized::Refuse;
    all.push(laws::refuses::law(refused).catching(&[
        "dealt-in-turn",
        "as-many-rows-a-part",
        "equal-size-ignored",
        "closed-after-it-overflows",
    ]));
    all.extend(own());
    all
}

invariants! {
    BatchPartition;
    every_row_once,
    no_empty_part,
    equal_size,
    balanced,
    capacity,
    few_parts,
    enough_parts,
    contiguous,
    restored,
}

/// What is in a part.
#[derive(Default)]
struct Content {
    rows: Vec<usize>,
    tokens: i64,
}

/// The part of each row of an answer, and what is in each of the parts. Numbers that are none of a
/// part are the business of `every-row-once`.
fn parts(
    probe: &mut Probe<'_, BatchPartition>,
) -> Result<(Vec<usize>, BTreeMap<usize, Content>), Stop> {
    let returned = probe.finite_output()?;
    let mut numbers = Vec::new();
    let mut contents: BTreeMap<usize, Content> = BTreeMap::new();
    for (row, part) in returned.output.parts.iter().enumerate() {
        if !is_part(*part) {
            return Err(Stop::Vacuous);
        }
        let content = contents.entry(*part as usize).or_default();
        content.rows.push(row);
        content.tokens += probe.case.lengths[row];
        numbers.push(*part as usize);
    }
    Ok((numbers, contents))
}

/// Whether a number is one of a part.
fn is_part(number: f64) -> bool {
    number >= 0.0 && number.fract() == 0.0
}

/// The lengths of some rows, for a message: `[9, 8]`.
fn lengths_of(probe: &Probe<'_, BatchPartition>, rows: &[usize]) -> Vec<i64> {
    rows.iter().map(|row| probe.case.lengths[*row]).collect()
}
