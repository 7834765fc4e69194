//! trlx: mean and deviation are those of the padded matrix.

use shakedown::contracts::whiten::{Options, Whiten, WhitenCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "trlx, whiten",
    place: Place::CPU_F32,
    found_by: &[
        "padding",
        "mean",
        "variance",
        "constant",
        "shift-invariant",
        "scales-with-the-values",
    ],
    fault: "statistics-over-padding",
    check: |bug, budget| bug.check_on::<Whiten>(answer, Options::default(), budget),
};

fn answer(case: &WhitenCase<Tensors>) -> Tensor {
    let values = under(&case.mask, &case.values);
    // Mended: values.masked_select(&case.mask)
    let counted = &values;
    let centred = &values - counted.mean(None);
    under(&case.mask, &(centred / (counted.var(true) + 1e-8).sqrt()))
}
