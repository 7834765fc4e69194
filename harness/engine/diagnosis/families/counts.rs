//! Sums divided by the wrong count: the right number over the one given is the quotient of two
//! counts of the case, whatever is summed.

use crate::diagnosis::count::Count;
use crate::diagnosis::evidence::{Cell, Given, Observed, cells};
use crate::diagnosis::hypothesis::{Part, fields};
use crate::diagnosis::score::Bench;
use shakedown_core::value::record::{Field, is_float};

/// Cases that are looked at.
const CASES: usize = 24;

/// The share of them that two counts must explain, in percent.
const SHARE: usize = 60;

/// Quotients are the same within this.
const SAME: f64 = 1e-3;

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let contract = bench.evidence.contract;
    let floats: Vec<Field> = contract.outputs().into_iter().filter(is_float).collect();
    let floats = floats.into_iter().filter(|field| !field.name.starts_with("grad_"));
    floats.flat_map(|field| of(bench, field.name)).collect()
}

fn of(bench: &Bench<'_>, field: &'static str) -> Vec<Part> {
    let quotients: Vec<(&Observed, f64)> = bench
        .chosen()
        .filter_map(|observed| Some((observed, quotient(bench, observed, field)?)))
        .take(CASES)
        .collect();
    let pairs = pairs(bench, &quotients).into_iter();
    pairs.map(|[by, instead_of]| Part::Divided { field, by, instead_of }).collect()
}

/// The pairs of counts whose quotients are those of the cases: what is divided by, and what should
/// be; those that explain most come first.
pub(super) fn pairs(bench: &Bench<'_>, quotients: &[(&Observed, f64)]) -> Vec<[Count; 2]> {
    let Some((first, _)) = quotients.first() else { return Vec::new() };
    let counts = Count::all(bench.evidence.contract, &*first.case);
    let of_cases: Vec<Vec<f64>> = counts
        .iter()
        .map(|count| quotients.iter().map(|(observed, _)| count.of(&*observed.case)).collect())
        .collect();
    let mut found: Vec<(usize, [Count; 2])> = Vec::new();
    for (instead_of, right) in counts.iter().zip(&of_cases) {
        for (by, used) in counts.iter().zip(&of_cases) {
            let pairs = right.iter().zip(used).zip(quotients);
            let fits = |((right, used), (_, quotient)): &((&f64, &f64), &(_, f64))| {
                **used != 0.0 && (*right / *used - quotient).abs() <= SAME * quotient.abs()
            };
            let explained = pairs.filter(fits).count();
            let [by, instead_of] = [by, instead_of].map(Count::clone);
            let are_roots = by.root && instead_of.root;
            if by != instead_of && !are_roots && explained * 100 >= SHARE * quotients.len() {
                found.push((explained, [by, instead_of]));
            }
        }
    }
    // Of those that explain as much, counts without a term are told first.
    found.sort_by_key(|(explained, pair)| {
        let terms = pair.iter().map(|count| count.plus.abs() + i8::from(count.root));
        (std::cmp::Reverse(*explained), terms.sum::<i8>())
    });
    found.truncate(12);
    found.into_iter().map(|(_, pair)| pair).collect()
}

/// What all wrong numbers of an output are of the right ones, where that is one factor.
fn quotient(bench: &Bench<'_>, observed: &Observed, field: &str) -> Option<f64> {
    let (expected, given) = observed.answered()?;
    let mut factor: Option<f64> = None;
    let mut wrong = false;
    for ((cell, given), of) in cells(expected).zip(given).zip(fields(expected)) {
        let (Cell::Number(right, _), Given::Number(found)) = (&cell, given) else { continue };
        if of != field || right.value == 0.0 || !right.value.is_finite() {
            continue;
        }
        wrong |= bench.evidence.wrong(given, &cell);
        let of_cell = found / right.value;
        if factor.is_some_and(|factor| (factor - of_cell).abs() > SAME * factor.abs()) {
            return None;
        }
        factor = Some(of_cell);
    }
    factor.filter(|_| wrong)
}
