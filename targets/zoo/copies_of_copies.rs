//! verl #1181: rows are repeated where they are sampled and again where they are sent.

use shakedown::contracts::group_sampling::{GroupSampling, GroupSamplingCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::group_sampling::group_sampling;

pub(super) const BUG: Bug = Bug {
    source: "verl #1181 (af15ae12f)",
    place: Place::CPU_F32,
    found_by: &["well-formed"],
    fault: "multiplied-again",
    check: |bug, budget| bug.check_on::<GroupSampling>(answer, Options::default(), budget),
};

fn answer(case: &GroupSamplingCase<Tensors>) -> Tensor {
    let rows = group_sampling(&case.prompts, case.seed.int64_value(&[]), &Options::default());
    // Mended: rows
    rows.repeat_interleave_self_int(2, 0, None)
}
