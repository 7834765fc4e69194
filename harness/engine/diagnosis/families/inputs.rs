//! Other inputs: nothing, something else, moved, rounded, through a function. Of a mask, in sums
//! alone too.

use super::{axes_of, flat};
use crate::diagnosis::axis::{Along, End};
use crate::diagnosis::change::Change;
use crate::diagnosis::hypothesis::Part;
use crate::diagnosis::score::Bench;
use crate::diagnosis::text::Text;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::numeric::function::Function;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{Field, Kind, is_float};

/// Where people clamp what they fear.
const LIMITS: [f64; 6] = [1.0, 5.0, 10.0, 20.0, 50.0, 100.0];

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let contract = bench.evidence.contract;
    let fields = flat(contract.inputs(), bench.evidence);
    let mut parts = Vec::new();
    for field in &fields {
        let axes = axes_of(contract.axes(), field);
        let mut changes = of(field, &axes);
        let like = |other: &&Field| {
            other.name != field.name && other.kind == field.kind && other.ndim == field.ndim
        };
        let instead = fields.iter().filter(like).filter(|other| !other.name.contains('*'));
        changes.extend(instead.map(|other| Change::Instead(other.name)));
        if field.kind == Kind::Bool && has_means(contract) {
            let of_mask = changes.iter().filter(|change| **change != Change::All(false)).cloned();
            parts.extend(of_mask.map(|change| Part::Summed { field: field.name, change }));
        }
        parts.extend(changes.into_iter().map(|change| Part::Input { field: field.name, change }));
    }
    parts
}

/// Whether an output is one number, as means are.
fn has_means(contract: &dyn AnyContract) -> bool {
    contract.outputs().iter().any(|field| is_float(field) && field.ndim == Some(0))
}

fn of(field: &Field, axes: &[Along]) -> Vec<Change> {
    let mut changes = Vec::new();
    match field.kind {
        Kind::Float => {
            changes.extend([0.0, 1.0].map(Change::Set));
            changes.extend([-1.0, 2.0, 0.5].map(Change::Times));
            changes.extend(Function::ALL.map(Change::Through));
            changes.extend(LIMITS.into_iter().flat_map(Function::limits).map(Change::Through));
            changes.extend([Dtype::Bf16, Dtype::F16].map(Change::Stored));
            changes.extend(axes.last().map(|along| Change::Softmax(*along)));
        }
        Kind::Bool => {
            changes.extend([Change::All(true), Change::All(false), Change::Not]);
            changes.push(Change::Filled);
            changes.extend(End::BOTH.map(Change::Without));
            changes.extend(End::BOTH.map(Change::Beyond));
        }
        Kind::Int => {
            changes.extend([Change::Merged, Change::Blocks, Change::Modulo]);
            changes.extend([1.0, -1.0].map(Change::Plus));
        }
        Kind::Text => changes.extend(Text::ALL.map(Change::Texts)),
        Kind::List => {}
    }
    for along in axes {
        changes.extend([-1, 1].map(|by| Change::Rolled(*along, by)));
        changes.push(Change::Reversed(*along));
        if field.kind != Kind::Text {
            changes.extend([-2, -1, 1, 2].map(|by| Change::Shifted(*along, by)));
            changes.extend(End::BOTH.map(|end| Change::Repeated(*along, end)));
        }
        if matches!(field.kind, Kind::Float | Kind::Bool) {
            changes.extend(End::BOTH.map(|end| Change::Cleared(*along, end)));
        }
        if field.kind == Kind::Float {
            changes.extend(End::BOTH.map(|end| Change::Accumulated(*along, end)));
        }
    }
    changes
}
