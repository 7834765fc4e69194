//! What must hold of `accumulated-loss`: the laws that apply, and one file for each of its own.

use crate::accumulated_loss::{
    AccumulatedLoss, AccumulatedLossCase, AccumulatedLossOutput, Options, tokens,
};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<AccumulatedLoss>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "inputs-in-half-precision",
            "sequence-nll-for-token-nll",
            "empty-rows-counted",
            "empty-rows-skipped",
        ]),
        laws::gradient::law().catching(&[
            "only-the-last-micro-batch",
            "gradient-zeroed-each-micro-batch",
            "divided-after-backward",
        ]),
        laws::refuses::law(|options: &Options| options.empty_mask == EmptyMask::Refuse)
            .catching(&["epsilon-in-the-denominator"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    AccumulatedLoss;
    partition,
    constant_loss,
    order_of_micro_batches,
    padding,
    masked_poison,
    empty_micro_batch,
    duplicated,
    gradient_sums_to_one,
}

/// Cases with a token; the others are as declared, and no relation says more of them.
fn with_tokens(probe: &Probe<'_, AccumulatedLoss>) -> Result<(), Stop> {
    if tokens(probe.case) == 0 { Err(Stop::Vacuous) } else { Ok(()) }
}

/// The loss of another case is `factor` times that of the case.
fn same_loss(
    probe: &mut Probe<'_, AccumulatedLoss>,
    other: &AccumulatedLossCase,
    factor: f64,
    what: &str,
) -> Outcome {
    let before = probe.finite_output()?;
    let after = probe.call(other)?;
    let expected = probe.expected_of(other);
    let allowed =
        factor * bound(&probe.bounds("loss")) + bound(&probe.bounds_in(&expected, "loss"));
    let (found, expected) = (number(&after), factor * number(&before.output));
    near(format_args!("{what}, the loss"), found, expected, allowed)
}

/// The loss as a number.
fn number(output: &AccumulatedLossOutput) -> f64 {
    output.loss[()]
}

/// The only number of the bounds of the loss.
fn bound(bounds: &ndarray::ArrayD<f64>) -> f64 {
    bounds.first().copied().unwrap_or(f64::INFINITY)
}
