//! Families of hypotheses: each makes its own of what a contract declares.

mod beside;
mod counts;
mod faults;
mod inputs;
pub(super) mod options;
pub(super) mod outputs;
mod readings;
mod relations;
mod terms;

use crate::diagnosis::axis::Along;
use crate::diagnosis::evidence::Evidence;
use crate::diagnosis::hypothesis::Part;
use crate::diagnosis::score::Bench;
use shakedown_core::generate::axes::Axes;
use shakedown_core::value::record::{Field, Kind};

/// Makes the hypotheses of a family, one part each.
pub(super) type Family = fn(&Bench<'_>) -> Vec<Part>;

/// All families, in the order in which they are asked: those behind are not, where those before
/// have what does exactly the same.
const FAMILIES: [&[Family]; 4] = [
    &[faults::parts, options::parts],
    &[relations::parts, readings::parts],
    &[options::fitted_parts, terms::parts, inputs::parts, counts::parts, outputs::parts],
    &[beside::parts],
];

/// Those that are asked where there is no oracle, so that other numbers may be right too.
const WITHOUT_AN_ORACLE: [&[Family]; 3] = [FAMILIES[0], FAMILIES[1], &[options::fitted_parts]];

/// The families that are asked about some evidence.
pub(super) fn asked_about(evidence: &Evidence) -> &'static [&'static [Family]] {
    if evidence.is_open() { &WITHOUT_AN_ORACLE } else { &FAMILIES }
}

/// The axes of a field.
fn axes_of(axes: &Axes, field: &Field) -> Vec<Along> {
    let dimensions = 0..field.ndim.unwrap_or(0);
    let along = |axis| Along { letter: axes.letter(field.name, axis).unwrap_or('?'), axis };
    dimensions.map(along).collect()
}

/// The fields with those of the items of lists under their pattern, `micro_batches.*.mask`.
fn flat(fields: Vec<Field>, evidence: &Evidence) -> Vec<Field> {
    let mut flat: Vec<Field> = Vec::new();
    for field in fields {
        if field.kind != Kind::List {
            flat.push(field);
            continue;
        }
        let Some(observed) = evidence.observed.first() else { continue };
        observed.case.each(&mut |name, _| {
            let inner = name.split_once(".0.").filter(|(list, _)| *list == field.name);
            let item =
                inner.and_then(|(_, rest)| field.items.iter().find(|item| item.name == rest));
            if let Some(item) = item {
                flat.push(Field { name: crate::diagnosis::count::pattern(name), ..item.clone() });
            }
        });
    }
    flat
}
