//! Faults of the reduction, and of which pairs are compared.

use ndarray::Array1;

use super::super::{Options, PairObjectiveCase, PairObjectiveOutput, Reduction, reference};
use super::{Fault, changed, scale_gradients, with_right_rewards};
use shakedown_core::value::place::Dtype;

/// The reduction, and which pairs are compared.
pub(super) fn batches() -> Vec<Fault> {
    vec![
        Fault::new("sum-for-the-mean", "the losses are added up, not averaged")
            .seen("reduction=\"sum\" left over")
            .under("{reduction: mean}")
            .made_of([changed(|output, case, options| {
                if options.reduction == Reduction::Mean {
                    let count = case.policy_chosen.len() as f64;
                    output.loss.iter_mut().for_each(|loss| *loss *= count);
                    scale_gradients(output, [count, count]);
                }
            })]),
        Fault::new("mean-over-both-sides", "the losses are divided by the number of completions")
            .seen("the length of a batch in which chosen and rejected rows are concatenated")
            .under("{reduction: mean}")
            .made_of([changed(|output, _, options| {
                if options.reduction == Reduction::Mean {
                    output.loss.iter_mut().for_each(|loss| *loss /= 2.0);
                    scale_gradients(output, [0.5, 0.5]);
                }
            })]),
        Fault::new("differences-averaged-first", "every pair gets the loss of the mean difference")
            .seen("mean() one line too early")
            .gives(&[averaged]),
        Fault::new(
            "pairs-misaligned",
            "a chosen completion is compared with the rejected one of the next pair",
        )
        .seen("a sampler that shuffles chosen and rejected rows on their own")
        .gives(&[misaligned]),
    ]
}

/// Every pair's loss is that of the mean difference.
fn averaged(case: &PairObjectiveCase, options: &Options, dtype: Dtype) -> PairObjectiveOutput {
    let mean = |field: &Array1<f64>, lengths: &Array1<i64>| {
        let averages = options.kind.averages();
        let lengths = lengths.mapv(|length| if averages { length as f64 } else { 1.0 });
        let mean = (field / &lengths).mean().expect("a pair at least");
        lengths * mean
    };
    let flat = PairObjectiveCase {
        policy_chosen: mean(&case.policy_chosen, &case.chosen_lengths),
        policy_rejected: mean(&case.policy_rejected, &case.rejected_lengths),
        ref_chosen: mean(&case.ref_chosen, &case.chosen_lengths),
        ref_rejected: mean(&case.ref_rejected, &case.rejected_lengths),
        ..case.clone()
    };
    with_right_rewards(reference::loss(&flat, options, dtype), case, options, dtype)
}

/// The rejected rows stand one place off.
fn misaligned(case: &PairObjectiveCase, options: &Options, dtype: Dtype) -> PairObjectiveOutput {
    let mut moved = case.clone();
    for field in [&mut moved.policy_rejected, &mut moved.ref_rejected] {
        field.as_slice_mut().expect("one dimension").rotate_left(1);
    }
    moved.rejected_lengths.as_slice_mut().expect("one dimension").rotate_left(1);
    let output = reference::loss(&moved, options, dtype);
    let back = output.grad_policy_rejected.clone().map(|mut gradient| {
        gradient.as_slice_mut().expect("one dimension").rotate_right(1);
        gradient
    });
    let output = PairObjectiveOutput { grad_policy_rejected: back, ..output };
    with_right_rewards(output, case, options, dtype)
}
