//! Known wrong behaviours of `policy-loss`: real bugs, and conventions mistaken for others.

mod advantages;
mod aggregation;
mod clipping;
mod graph;
mod kl;
mod masking;
mod metrics;
mod ratio;

use ndarray::{Array0, Array2};

use super::{Options, PolicyLoss, PolicyLossCase, PolicyLossOutput, reference};
use shakedown_core::contract::fault;
use shakedown_core::laws::faults::masking as shared;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<PolicyLoss>;
type Variant = fault::Variant<PolicyLoss>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [
        ratio::what(),
        ratio::clamps(),
        ratio::sequences(),
        clipping::bounds(),
        clipping::objectives(),
        advantages::all(),
        masking::all(),
        aggregation::means(),
        aggregation::counts(),
        kl::terms(),
        kl::sums_and_clamps(),
        metrics::clip_fraction(),
        metrics::approx_kl(),
    ]
    .into_iter()
    .flatten()
    .chain(shared::of_other_rows())
    .collect()
}

/// What is right.
fn right(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> PolicyLossOutput {
    reference::policy_loss(case, options, dtype)
}

/// The loss and gradient of another convention; the metrics are right.
fn loss_as_if(change: impl Fn(&mut Options) + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let mut changed = options.clone();
        change(&mut changed);
        let wrong = right(case, &changed, dtype);
        with_loss(right(case, options, dtype), wrong.loss, wrong.grad_log_probs)
    })
}

/// The right metrics, with another loss and gradient.
fn with_loss(
    right: PolicyLossOutput,
    loss: Array0<f64>,
    grad_log_probs: Option<Array2<f64>>,
) -> PolicyLossOutput {
    PolicyLossOutput { loss, grad_log_probs, ..right }
}

/// The gradient of an output.
fn gradient(output: &PolicyLossOutput) -> Array2<f64> {
    output.grad_log_probs.clone().expect("the reference gives it")
}

/// The number of tokens.
fn tokens(mask: &Array2<bool>) -> usize {
    mask.iter().filter(|kept| **kept).count()
}
