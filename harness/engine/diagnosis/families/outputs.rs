//! Right outputs that something was done to at the end: a sign, a factor, another order.

use super::axes_of;
use crate::diagnosis::axis::End;
use crate::diagnosis::change::Change;
use crate::diagnosis::evidence::{Cell, Given, cells};
use crate::diagnosis::hypothesis::{EVERY, Part, fields};
use crate::diagnosis::score::Bench;
use crate::diagnosis::text::Text;
use shakedown_core::numeric::function::Function;
use shakedown_core::value::record::{Field, Kind};

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let contract = bench.evidence.contract;
    let outputs = contract.outputs();
    let mut parts = Vec::new();
    for field in &outputs {
        let mut changes = Vec::new();
        match field.kind {
            Kind::Float => {
                changes.extend([0.0, 1.0, f64::NAN].map(Change::Set));
                changes.extend([-1.0, 2.0, 0.5].map(Change::Times));
                changes.extend(Function::ALL.map(Change::Through));
                changes.extend(fitted(bench, field));
                if contract.whole().contains(&field.name) {
                    changes.push(Change::Filled);
                    changes.extend(End::BOTH.map(Change::Without));
                    changes.extend(End::BOTH.map(Change::Beyond));
                }
            }
            Kind::Text => {
                changes.extend(Text::ALL.map(Change::Texts));
                changes.extend(cut(bench, field).into_iter().map(Change::Texts));
            }
            _ => continue,
        }
        for along in axes_of(contract.axes(), field) {
            changes.extend([-1, 1].map(|by| Change::Rolled(along, by)));
            changes.push(Change::Reversed(along));
            if field.kind == Kind::Float {
                changes.extend([-1, 1].map(|by| Change::Shifted(along, by)));
                changes.extend(End::BOTH.map(|end| Change::Cleared(along, end)));
                changes.extend(End::BOTH.map(|end| Change::Repeated(along, end)));
            }
        }
        parts.extend(changes.into_iter().map(|change| Part::Output { field: field.name, change }));
    }
    if outputs.iter().filter(|field| field.kind == Kind::Float).count() > 1 {
        let mut changes = [-1.0, 2.0, 0.5].map(Change::Times).to_vec();
        changes.push(Change::Set(0.0));
        changes.extend(outputs.first().into_iter().flat_map(|first| fitted(bench, first)));
        parts.extend(changes.into_iter().map(|change| Part::Output { field: EVERY, change }));
    }
    parts
}

/// The factor and the term that most wrong numbers of an output differ by, and the limits that most
/// of them stand at: the medians.
fn fitted(bench: &Bench<'_>, field: &Field) -> Vec<Change> {
    let (mut factors, mut terms) = (Vec::new(), Vec::new());
    let (mut smaller, mut larger) = (Vec::new(), Vec::new());
    for observed in bench.chosen() {
        let Some((expected, given)) = observed.answered() else { continue };
        for ((cell, given), of) in cells(expected).zip(given).zip(fields(expected)) {
            let (Cell::Number(right, _), Given::Number(found)) = (&cell, given) else { continue };
            let usable = found.is_finite() && right.value.is_finite() && !cell.is_open();
            if of == field.name && usable && bench.evidence.wrong(given, &cell) {
                terms.push(found - right.value);
                let side = if *found < right.value { &mut smaller } else { &mut larger };
                side.push(*found);
                factors.extend((right.value != 0.0).then(|| found / right.value));
            }
        }
    }
    let mut changes = Vec::new();
    changes.extend(median(factors).filter(|x| ![0.0, 1.0, -1.0, 2.0, 0.5].contains(x)));
    let mut changes: Vec<Change> = changes.into_iter().map(Change::Times).collect();
    changes.extend(median(terms).map(Change::Plus));
    let (least, most) = (median(larger), median(smaller));
    let limited = |least, most| Change::Through(Function::Limited(least, most));
    changes.extend(most.map(|most| limited(f64::NEG_INFINITY, most)));
    changes.extend(least.map(|least| limited(least, f64::INFINITY)));
    let both = least.zip(most).filter(|(least, most)| least <= most);
    changes.extend(both.map(|(least, most)| limited(least, most)));
    changes
}

/// The length that most of the longest wrong texts have: where somebody cuts.
fn cut(bench: &Bench<'_>, field: &Field) -> Vec<Text> {
    let mut lengths = Vec::new();
    for observed in bench.chosen() {
        let Some((expected, given)) = observed.answered() else { continue };
        for ((cell, given), of) in cells(expected).zip(given).zip(fields(expected)) {
            let (Cell::Text(_), Given::Text(Some(found))) = (&cell, given) else { continue };
            if of == field.name && bench.evidence.wrong(given, &cell) {
                lengths.push(found.chars().count());
            }
        }
    }
    let longest = lengths.iter().max().copied().unwrap_or(0);
    let is_limit = lengths.iter().filter(|length| **length == longest).count() > 1;
    if is_limit { vec![Text::First(longest), Text::Last(longest)] } else { Vec::new() }
}

fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).map(|median| shortest(*median))
}

/// A number in as few digits as make no difference.
pub(crate) fn shortest(number: f64) -> f64 {
    let digits = (0..6).map(|digits| format!("{number:.digits$e}").parse().unwrap_or(number));
    let same = |x: &f64| (x - number).abs() <= 1e-4 * number.abs();
    digits.chain([number]).find(same).unwrap_or(number)
}
