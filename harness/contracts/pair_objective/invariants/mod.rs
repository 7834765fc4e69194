//! What must hold of `pair-objective`: the laws that apply, and one file for each of its own.

use ndarray::{Array1, ArrayD};

use crate::pair_objective::{
    Kind, Options, PairObjective, PairObjectiveCase, PairObjectiveOutput, Reduction,
};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;
use shakedown_core::laws::compare::outputs;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<PairObjective>> {
    let mut all = laws::universal_and(&[("finite", &["logarithm-of-the-sigmoid"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "sign-flipped",
            "logarithm-left-out",
            "hinge-for-logistic",
            "beta-not-applied",
            "beta-applied-twice",
            "gamma-not-applied",
            "gamma-added",
            "gamma-on-both-sides",
            "beta-of-the-default",
            "odds-ratio-inverted",
            "gamma-scaled-by-beta",
            "sft-term-left-out",
            "sft-term-of-sums",
            "sft-term-over-the-batch",
            "beta-on-the-likelihood",
            "odds-of-sums",
            "odds-without-the-complement",
            "ipo-target",
            "ipo-on-sums",
            "sppo-target",
            "exo-forward",
            "exo-without-the-target",
            "exo-chosen-share",
            "exo-cross-entropy",
            "apo-of-the-difference",
            "bco-one-margin",
            "nca-weights",
            "apo-zero-for-down",
            "apo-down-for-zero",
            "aot-sorts-one-side",
            "aot-not-sorted",
            "aot-sorts-log-probs",
            "aot-unpaired-for-paired",
            "sum-for-the-mean",
            "log-probs-in-half-precision",
        ]),
        laws::gradient::law().catching(&[
            "no-gradient-reaches-the-policy",
            "smoothing-share-swapped",
            "rejected-side-detached",
            "aot-gradients-stay-in-order",
            "sft-term-detached",
            "averages-of-the-detached-sum",
        ]),
        laws::row_permutation::law().catching(&["pairs-misaligned"]),
        laws::row_split::law().catching(&["pairs-misaligned", "differences-averaged-first"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    PairObjective;
    equal_policies,
    bounded,
    length_normalised,
    lengths_ignored,
    reference_ignored,
    shift_of_a_side,
    shift_of_both_sides,
    sides_apart,
    exchanged,
    moves_the_right_way,
    rewards,
    gradient_signs,
    gradients_balance,
    gradient_finite,
}

/// The losses, or the one loss.
fn losses(output: &PairObjectiveOutput, options: &Options) -> Result<ArrayD<f64>, Stop> {
    let found = outputs(output).into_iter().find(|(name, _)| *name == options.output());
    found.map(|(_, array)| array.to_owned()).ok_or(Stop::Vacuous)
}

/// Numbers of the pairs, reduced as the losses are.
fn reduced(numbers: Vec<f64>, options: &Options) -> ArrayD<f64> {
    let numbers = Array1::from(numbers);
    match options.reduction {
        Reduction::None => numbers.into_dyn(),
        Reduction::Mean => ndarray::arr0(numbers.mean().unwrap_or(0.0)).into_dyn(),
    }
}

/// Whether more probability for the chosen completion never raises the loss, and more for the
/// rejected one never lowers it.
fn falls(options: &Options) -> bool {
    match options.kind {
        Kind::Orpo | Kind::BcoPair | Kind::ApoZero => true,
        Kind::Simpo | Kind::SigmoidNorm | Kind::Aot | Kind::AotUnpaired => {
            options.label_smoothing == 0.0
        }
        Kind::IpoNorm | Kind::Nca | Kind::SppoHard | Kind::ApoDown | Kind::Exo => false,
    }
}

/// Whether only the difference of the sides counts.
fn is_of_the_difference(kind: Kind) -> bool {
    kind.sorts() || matches!(kind, Kind::Simpo | Kind::SigmoidNorm | Kind::IpoNorm | Kind::Exo)
}

/// The case with the policy equal to its reference.
fn agreed(case: &PairObjectiveCase) -> PairObjectiveCase {
    PairObjectiveCase {
        policy_chosen: case.ref_chosen.clone(),
        policy_rejected: case.ref_rejected.clone(),
        ..case.clone()
    }
}

/// Numbers moved by these, where the dtype holds what comes out.
fn moved(
    numbers: &Array1<f64>,
    dtype: Dtype,
    by: impl Fn(usize) -> f64,
) -> Result<Array1<f64>, Stop> {
    let exact = |(at, x): (usize, &f64)| {
        let by = by(at);
        let moved = x + by;
        let is_exact = dtype.round(moved) == moved && moved - by == *x && moved - x == by;
        is_exact.then_some(moved).ok_or(Stop::Vacuous)
    };
    numbers.iter().enumerate().map(exact).collect()
}
