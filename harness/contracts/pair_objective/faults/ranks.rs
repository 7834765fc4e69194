//! Faults of AOT: what is sorted, and what is done with the ranks.

use ndarray::Array1;

use super::super::reference::{Pair, made_of, smoothed, sorted};
use super::super::{Kind, Options, PairObjectiveCase, PairObjectiveOutput, reference};
use super::{Fault, Variant};
use shakedown_core::numeric::tape::Var;
use shakedown_core::value::place::Dtype;

/// AOT.
pub(super) fn ranks() -> Vec<Fault> {
    vec![
        Fault::new("aot-sorts-one-side", "one side is sorted, the other not")
            .seen("one of TRL's two torch.sort left out")
            .under("{kind: aot, reduction: mean}")
            .made_of([
                in_order(|[higher, lower]| [sorted(higher), lower]),
                in_order(|[higher, lower]| [higher, sorted(lower)]),
            ]),
        Fault::new("aot-not-sorted", "pairs are compared as they come")
            .seen("DPO's margin where AOT's ranks are declared")
            .under("{kind: aot, reduction: mean}")
            .made_of([in_order(|sides| sides)]),
        Fault::new("aot-sorted-against-each-other", "one side ascends and the other descends")
            .seen("`descending=True` in one of two sorts")
            .under("{kind: aot, reduction: mean}")
            .made_of([in_order(|[higher, lower]| {
                let mut lower = sorted(lower);
                lower.reverse();
                [sorted(higher), lower]
            })]),
        Fault::new("aot-sorts-log-probs", "each list of log-probabilities is sorted by itself")
            .seen("mutation: torch.sort before the subtraction, not after it")
            .under("{kind: aot, reduction: mean}")
            .made_of([Variant::gives(|case: &PairObjectiveCase, options: &Options, dtype| {
                made_of(case, options, dtype, |pairs, options| {
                    if !options.kind.sorts() {
                        return reference::losses(pairs, options);
                    }
                    let policy = [
                        sorted(pairs.iter().map(|pair| pair.chosen.policy)),
                        sorted(pairs.iter().map(|pair| pair.rejected.policy)),
                    ];
                    let reference = [
                        sorted(pairs.iter().map(|pair| pair.chosen.reference)),
                        sorted(pairs.iter().map(|pair| pair.rejected.reference)),
                    ];
                    ranked(less(policy), less(reference), options)
                })
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

/// A pair's log-ratio of the chosen side.
fn of_chosen<'t>(pair: &Pair<'_, 't>) -> Var<'t> {
    pair.chosen.ratio()
}

/// That of the rejected side.
fn of_rejected<'t>(pair: &Pair<'_, 't>) -> Var<'t> {
    pair.rejected.ratio()
}

/// The numbers that are compared, the higher and the lower side.
type Compared<'t> = [Vec<Var<'t>>; 2];

/// Both kinds with the numbers that they compare in another order.
fn in_order(order: for<'t> fn(Compared<'t>) -> Compared<'t>) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| {
            let sides: Compared<'_> = match options.kind {
                Kind::Aot => [
                    pairs.iter().map(of_policy).collect(),
                    pairs.iter().map(of_reference).collect(),
                ],
                Kind::AotUnpaired => {
                    [pairs.iter().map(of_chosen).collect(), pairs.iter().map(of_rejected).collect()]
                }
                _ => return reference::losses(pairs, options),
            };
            let [higher, lower] = order(sides);
            ranked(higher, lower, options)
        })
    })
}

/// The first numbers less the second.
fn less<'t>([a, b]: Compared<'t>) -> Vec<Var<'t>> {
    a.into_iter().zip(b).map(|(a, b)| a - b).collect()
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
