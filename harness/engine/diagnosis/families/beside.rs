//! What is made of a field and what lies beside it: the mean of all, of a row or of a group in
//! place of each number, numbers less their mean, standardised or scaled, sums for means of a row,
//! the sum, difference, product or quotient of two fields.

use super::{axes_of, flat};
use crate::diagnosis::change::{Change, Operation};
use crate::diagnosis::hypothesis::Part;
use crate::diagnosis::score::Bench;
use crate::diagnosis::statistic::{Over, Statistic};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::value::record::{Field, Kind, is_float};

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let contract = bench.evidence.contract;
    let inputs = flat(contract.inputs(), bench.evidence);
    let mut outputs = contract.outputs();
    outputs.retain(|field| !field.name.starts_with("grad_"));
    // Beside the items of a list nothing is found.
    let beside: Vec<&Field> = inputs.iter().filter(|field| !field.name.contains('*')).collect();
    let mut parts = Vec::new();
    for field in inputs.iter().filter(|field| is_float(field)) {
        let part = |change| Part::Input { field: field.name, change };
        parts.extend(changes(contract, field, &beside).into_iter().map(part));
    }
    let beside: Vec<&Field> = outputs.iter().chain(beside).collect();
    for field in outputs.iter().filter(|field| is_float(field)) {
        let part = |change| Part::Output { field: field.name, change };
        parts.extend(changes(contract, field, &beside).into_iter().map(part));
        let alike = beside.iter().filter(|other| is_alike(contract, field, other));
        parts.extend(alike.map(|other| part(Change::Instead(other.name))));
    }
    parts
}

/// Whether both are numbers of the same axes.
fn is_alike(contract: &dyn AnyContract, field: &Field, other: &Field) -> bool {
    let [axes, of_other] = [field, other].map(|one| axes_of(contract.axes(), one));
    is_float(other) && other.name != field.name && axes == of_other
}

/// What is done to a field beside others.
fn changes(contract: &dyn AnyContract, field: &Field, beside: &[&Field]) -> Vec<Change> {
    let axes = &axes_of(contract.axes(), field)[..];
    let mut changes = Vec::new();
    // Along the only axis are all.
    let several = if axes.len() > 1 { axes } else { &[] };
    let kept = |mask| {
        let along = [None].into_iter().chain(several.iter().copied().map(Some));
        along.map(move |along| Over::Kept { mask, along })
    };
    let mut overs: Vec<Over> = kept(None).collect();
    for other in beside {
        let of_other = &axes_of(contract.axes(), other)[..];
        let rows = of_other.split_last().map_or(&[][..], |(_, rows)| rows);
        match other.kind {
            Kind::Float if is_alike(contract, field, other) => {
                changes.extend(Operation::ALL.map(|with| Change::With(with, other.name)));
            }
            Kind::Int if of_other == axes => {
                overs.push(Over::Group(other.name));
            }
            Kind::Bool if !rows.is_empty() && (axes == rows || axes == of_other) => {
                changes.push(Change::OverLength(other.name));
                changes.push(Change::TimesLength(other.name));
                if axes == of_other {
                    overs.extend(kept(Some(other.name)));
                }
            }
            _ => {}
        }
    }
    if !axes.is_empty() {
        let of = |over| Statistic::ALL.map(|statistic| Change::Counted(statistic, over));
        changes.extend(overs.into_iter().flat_map(of));
    }
    changes
}
