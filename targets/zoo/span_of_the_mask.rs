//! OpenRLHF #1243: the length is the span from the first token of the policy to its last, and
//! what a tool wrote between them is paid for.

use shakedown::contracts::length_penalty::{LengthPenalty, LengthPenaltyCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::length_penalty::length_penalty;

pub(super) const BUG: Bug = Bug {
    source: "OpenRLHF #1243, #1252, #1255",
    place: Place::CPU_F32,
    found_by: &["oracle", "continuous", "knees"],
    fault: "length-is-the-span-of-the-mask",
    check: |bug, budget| bug.check_on::<LengthPenalty>(answer, Options::default(), budget),
};

fn answer(case: &LengthPenaltyCase<Tensors>) -> Tensor {
    let between = case.lengths.divide_scalar_mode(3, "floor"); // a tool wrote a third as much
    // Mended: case.lengths.shallow_clone()
    let lengths = &case.lengths + between;
    length_penalty(&lengths, &Options::default())
}
