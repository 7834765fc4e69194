//! The reference implementation of `outcome-advantage`, as a trainer would write it.

use std::iter::Sum;

use num_traits::Float;

use super::super::group_advantage::reference::normalised;
use super::{
    EmptyRows, Options, OutcomeAdvantageCase, OutcomeAdvantageOutput, groups, is_empty, kept,
    spread,
};
use shakedown_core::value::place::Dtype;

/// The advantages, computed in the arithmetic of the dtype.
pub(super) fn advantages(
    case: &OutcomeAdvantageCase,
    options: &Options,
    dtype: Dtype,
) -> OutcomeAdvantageOutput {
    let advantages = match dtype.arithmetic() {
        Dtype::F64 => by_row::<f64>(case, options),
        _ => by_row::<f32>(case, options),
    };
    spread(&case.mask, &advantages, 0.0).into()
}

fn by_row<F: Float + Sum>(case: &OutcomeAdvantageCase, options: &Options) -> Vec<f64> {
    let number = |x: f64| F::from(x).expect("every float format holds any f64, rounded");
    let outcome = |row: usize| match options.empty_rows {
        EmptyRows::Exclude if is_empty(case, row) => F::nan(),
        _ => kept(case, row).map(number).sum(),
    };
    let outcomes: Vec<F> = (0..case.groups.len()).map(outcome).collect();
    let advantages = normalised(&outcomes, &groups(case), &options.of_outcomes());
    advantages.into_iter().map(|a| a.to_f64().expect("every float is an f64")).collect()
}
