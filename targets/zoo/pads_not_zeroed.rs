//! verl #1527: what is masked is 0 before whitening and -mean/deviation after it.

use shakedown::author::conventions::EmptyMask;
use shakedown::contracts::whiten::{Options, Whiten, WhitenCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "verl #1527 (4e9586a3a)",
    place: Place::CPU_F32,
    found_by: &["oracle"],
    fault: "pads-not-zeroed-again",
    check: |bug, budget| {
        let options = Options { empty_mask: EmptyMask::Avoid, ..Options::default() };
        bug.check_on::<Whiten>(answer, options, budget)
    },
};

fn answer(case: &WhitenCase<Tensors>) -> Tensor {
    let values = under(&case.mask, &case.values);
    let counted = values.masked_select(&case.mask);
    // Mended: under(&case.mask, &(...))
    (values - counted.mean(None)) / (counted.var(true) + 1e-8).sqrt()
}
