//! trl #137: the slice of the values begins one token before that of the log-probabilities.

use shakedown::contracts::gae::{Gae, GaeCase, GaeOutput, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::gae::gae;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "trl #137 (8070ac041)",
    place: Place::CPU_F32,
    found_by: &[
        "oracle",
        "row-end",
        "recursion",
        "exact-values",
        "returns-minus-values",
        "causal",
        "linear",
    ],
    fault: "values-one-step-early",
    check: |bug, budget| bug.check_on::<Gae>(answer, Options::default(), budget),
};

fn answer(case: &GaeCase<Tensors>) -> GaeOutput<Tensors> {
    let values = under(&case.mask, &case.values);
    // Mended: without this line
    let values = values.constant_pad_nd([1, -1]);
    let gae = gae(&case.rewards, &values, &case.mask, &Options::default());
    GaeOutput { advantages: gae.advantages, returns: gae.returns }
}
