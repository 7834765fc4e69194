//! CleanRL #337: the returns are made before the advantages are, which are still 0.

use shakedown::contracts::gae::{Gae, GaeCase, GaeOutput, Options};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::gae::gae;
use crate::masked::under;

pub(super) const BUG: Bug = Bug {
    source: "CleanRL #337 (95fcdd75)",
    place: Place::CPU_F32,
    found_by: &["oracle", "row-end", "recursion", "returns-minus-values"],
    fault: "returns-from-stale-advantages",
    check: |bug, budget| bug.check_on::<Gae>(answer, Options::default(), budget),
};

fn answer(case: &GaeCase<Tensors>) -> GaeOutput<Tensors> {
    let values = under(&case.mask, &case.values);
    let advantages = values.zeros_like();
    // Mended: after the next statement
    let returns = advantages + values;
    let advantages = gae(&case.rewards, &case.values, &case.mask, &Options::default()).advantages;
    GaeOutput { advantages, returns }
}
