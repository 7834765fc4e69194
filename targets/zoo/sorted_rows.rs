//! verl #1943: rows are sorted into micro-batches, and their entropies come back in that order.

use shakedown::contracts::token_entropy::{Options, TokenEntropy, TokenEntropyCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::entropy::token_entropy;

pub(super) const BUG: Bug = Bug {
    source: "verl #1943 (b4aa2dce8), #2185",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "row-permutation",
        "row-split",
        "uniform",
        "near-one-hot",
        "position-local",
    ],
    fault: "rows-left-in-sorted-order",
    check: |bug, budget| bug.check_on::<TokenEntropy>(answer, Options::default(), budget),
};

fn answer(case: &TokenEntropyCase<Tensors>) -> Tensor {
    let sorted = case.logits.flip([0]); // the last row is the longest here
    // Mended: token_entropy(&sorted, &Options::default()).flip([0])
    token_entropy(&sorted, &Options::default())
}
