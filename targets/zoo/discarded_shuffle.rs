//! open-instruct #560: the shuffled copy of the data is thrown away.

use shakedown::contracts::group_sampling::{GroupSampling, GroupSamplingCase, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::group_sampling::group_sampling;

pub(super) const BUG: Bug = Bug {
    source: "open-instruct #560 (d746b67eb)",
    place: Place::CPU_F32,
    found_by: &["seeded"],
    fault: "shuffle-discarded",
    check: |bug, budget| {
        let options = Options { shuffle: true, ..Options::default() };
        bug.check_on::<GroupSampling>(answer, options, budget)
    },
};

fn answer(case: &GroupSamplingCase<Tensors>) -> Tensor {
    // Mended: Options { shuffle: true, ..Options::default() }
    let options = Options::default();
    group_sampling(&case.prompts, case.seed.int64_value(&[]), &options)
}
