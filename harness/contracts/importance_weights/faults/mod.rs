//! Known wrong behaviours of `importance-weights`: real bugs, and conventions mistaken for others.

mod bounds;
mod dropping;
mod masking;
mod mean;
mod metrics;
mod numbers;
mod ratio;

use super::reference::{RIGHT, Row, Steps};
use super::{
    ImportanceWeights, ImportanceWeightsCase, ImportanceWeightsOutput, Options, reference,
};
use shakedown_core::contract::fault;
use shakedown_core::laws::faults::masking as shared;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<ImportanceWeights>;
type Variant = fault::Variant<ImportanceWeights>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [
        ratio::all(),
        bounds::all(),
        dropping::all(),
        mean::all(),
        metrics::all(),
        masking::all(),
        numbers::all(),
    ];
    themes.into_iter().flatten().chain(shared::of_other_rows()).collect()
}

/// The reference with some of its steps replaced.
fn steps(change: fn(&mut Steps)) -> Variant {
    let mut steps = RIGHT;
    change(&mut steps);
    Variant::gives(move |case, options, dtype| steps.run(case, options, dtype))
}

/// What the reference gives, changed.
fn after(
    change: fn(&mut ImportanceWeightsOutput, &ImportanceWeightsCase, &Options, Dtype),
) -> Variant {
    Variant::gives(move |case, options, dtype| {
        let mut output = reference::weights(case, options, dtype);
        change(&mut output, case, options, dtype);
        output
    })
}

/// The rows of a case.
fn rows(case: &ImportanceWeightsCase, dtype: Dtype) -> Vec<Row> {
    RIGHT.rows(case, dtype)
}

/// The number of tokens that count.
fn count(case: &ImportanceWeightsCase) -> f64 {
    case.mask.iter().filter(|kept| **kept).count() as f64
}
