//! Faults of AOT: what is sorted, and what is done with the ranks.

use ndarray::Array1;

use super::super::reference::{Pair, made_of, smoothed, sorted};
use super::super::{Kind, Options, PairObjectiveCase, PairObjectiveOutput, reference};
use super::{Fault, Variant};
use crate::numeric::tape::Var;
use crate::value::place::Dtype;

/// AOT.
pub(super) fn ranks() -> Vec<Fault> {
    vec![
        Fault::new("aot-sorts-one-side", "the policy's differences are sorted, the others not")
            .seen("one of TRL's two torch.sort left out")
            .under("{kind: aot, reduction: mean}")
            .made_of([aot(|pairs| {
                (sorted(pairs.iter().map(of_policy)), pairs.iter().map(of_reference).collect())
            })]),
        Fault::new("aot-not-sorted", "pairs are compared as they come")
            .seen("DPO's margin where AOT's ranks are declared")
            .under("{kind: aot, reduction: mean}")
            .made_of([aot(|pairs| {
                (pairs.iter().map(of_policy).collect(), pairs.iter().map(of_reference).collect())
            })]),
        Fault::new("aot-sorted-against-each-other", "one side ascends and the other descends")
            .seen("`descending=True` in one of two sorts")
            .under("{kind: aot, reduction: mean}")
            .made_of([aot(|pairs| {
                let mut lower = sorted(pairs.iter().map(of_reference));
                lower.reverse();
                (sorted(pairs.iter().map(of_policy)), lower)
            })]),
        Fault::new(
            "aot-gradients-stay-in-order",
            "gradients go to the pair of their rank's number",
        )
        .seen("the sorted values put back without their indices")
        .under("{kind: aot, reduction: mean}")
        .gives(&[gradients_stay]),
        Fault::new("aot-unpaired-for-paired", "`aot-unpaired` where `aot` is declared")
            .seen("two values of one option taken for each other")
            .under("{kind: aot, reduction: mean}")
            .gives(&[|case, options, dtype| {
                // Ties of the other kind are no matter here: their values are the same.
                let kind = match options.kind {
                    Kind::Aot => Kind::AotUnpaired,
                    kind => kind,
                };
                reference::loss(case, &Options { kind, ..options.clone() }, dtype)
            }]),
        Fault::new(
            "aot-unpaired-sorts-the-chosen-side-only",
            "the chosen side without its reference, the rejected one with it",
        )
        .seen("the names of log-probabilities and log-ratios taken for each other")
        .under("{kind: aot-unpaired, reduction: mean}")
        .made_of([Variant::gives(|case: &PairObjectiveCase, options: &Options, dtype| {
            made_of(case, options, dtype, |pairs, options| match options.kind {
                Kind::AotUnpaired => ranked(
                    sorted(pairs.iter().map(|p| p.chosen.ratio() + p.chosen.policy)),
                    sorted(pairs.iter().map(|p| p.rejected.ratio())),
                    options,
                ),
                _ => reference::losses(pairs, options),
            })
        })]),
    ]
}

/// A pair's difference of log-probabilities under the policy.
fn of_policy<'t>(pair: &Pair<'_, 't>) -> Var<'t> {
    pair.chosen.policy - pair.rejected.policy
}

/// The same under the reference.
fn of_reference<'t>(pair: &Pair<'_, 't>) -> Var<'t> {
    pair.chosen.reference - pair.rejected.reference
}

/// The numbers that are compared, the higher and the lower side.
type Compared<'t> = (Vec<Var<'t>>, Vec<Var<'t>>);

/// `aot` over other numbers, or in another order.
fn aot(compared: for<'a, 't> fn(&[Pair<'a, 't>]) -> Compared<'t>) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| match options.kind {
            Kind::Aot => {
                let (higher, lower) = compared(pairs);
                ranked(higher, lower, options)
            }
            _ => reference::losses(pairs, options),
        })
    })
}

/// The losses of numbers that are compared in their order.
fn ranked<'t>(higher: Vec<Var<'t>>, lower: Vec<Var<'t>>, options: &Options) -> Vec<Var<'t>> {
    let ranks = higher.into_iter().zip(lower);
    ranks.map(|(a, b)| smoothed((a - b) * options.beta, options.label_smoothing)).collect()
}

/// The gradients of ranks, in the order of the ranks.
fn gradients_stay(
    case: &PairObjectiveCase,
    options: &Options,
    dtype: Dtype,
) -> PairObjectiveOutput {
    let right = reference::loss(case, options, dtype);
    if options.kind != Kind::Aot {
        return right;
    }
    let differences = &case.policy_chosen - &case.policy_rejected;
    let mut order: Vec<usize> = (0..differences.len()).collect();
    order.sort_by(|a, b| differences[*a].total_cmp(&differences[*b]));
    let in_order = |gradient: Option<Array1<f64>>| {
        gradient.map(|gradient| order.iter().map(|at| gradient[*at]).collect::<Array1<f64>>())
    };
    PairObjectiveOutput {
        grad_policy_chosen: in_order(right.grad_policy_chosen),
        grad_policy_rejected: in_order(right.grad_policy_rejected),
        ..right
    }
}
