//! verl #2016: the factor of one half went when the aggregation was rewritten.

use shakedown::contracts::value_loss::{Options, ValueLoss, ValueLossCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "verl #2016 (6e15bbe25)",
    place: Place::CPU_F32,
    found_by: &["oracle", "gradient", "constant-error"],
    fault: "half-factor-lost",
    check: |bug, budget| bug.check_on::<ValueLoss>(answer, Options::default(), budget),
};

fn answer(case: &ValueLossCase<Tensors>) -> Tensor {
    let errors = under(&case.mask, &(&case.values - &case.returns)).square();
    // Mended: (errors * 0.5)
    errors.sum(None) / case.mask.sum(errors.kind()).clamp_min(1.0)
}
