//! What must hold of `preference-loss`: the laws that apply, and one file for each of its own.

use ndarray::{Array1, ArrayD};

use crate::preference_loss::{Kind, Options, PreferenceLoss, PreferenceLossOutput, Reduction};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;
use shakedown_core::laws::compare::outputs;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<PreferenceLoss>> {
    let mut all = laws::universal_and(&[("finite", &["logarithm-of-the-sigmoid"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "sign-flipped",
            "beta-not-applied",
            "beta-applied-twice",
            "label-smoothing-ignored",
            "robust-not-normalised",
            "margin-added",
            "margin-ignored",
            "margin-scaled-by-beta",
            "ipo-target-doubled",
            "ipo-of-the-scaled-margin",
            "sum-for-the-mean",
            "margin-in-half-precision",
        ]),
        laws::gradient::law().catching(&["rejected-side-detached", "sum-for-the-mean"]),
        laws::row_permutation::law().catching(&["pairs-misaligned"]),
        laws::row_split::law().catching(&["pairs-misaligned", "margins-averaged-before-the-loss"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    PreferenceLoss;
    equal_policies,
    non_negative,
    falls_with_the_margin,
    opposite_pairs,
    shift_of_a_side,
    reference_ignored,
    implicit_rewards,
    gradients_opposite,
    gradient_finite,
}

/// The losses, or the one loss.
fn losses(output: &PreferenceLossOutput, options: &Options) -> Result<ArrayD<f64>, Stop> {
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

/// Whether the loss falls wherever the margin grows.
fn falls(options: &Options) -> bool {
    match options.kind {
        Kind::Sigmoid => options.label_smoothing == 0.0,
        Kind::Hinge | Kind::Robust => true,
        Kind::Ipo => false,
    }
}
