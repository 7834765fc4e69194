//! trl #6443: the values of the reference are computed again, with the weights that were trained.

use shakedown::contracts::policy_update::{
    Options, PolicyUpdate, PolicyUpdateCase, PolicyUpdateOutput,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;

use super::Bug;
use crate::bandit::{Training, grpo};
use crate::grpo::Grpo;

pub(super) const BUG: Bug = Bug {
    source: "trl #6443 (d2b72b720)",
    place: Place::CPU_F32,
    found_by: &["reference-unchanged"],
    fault: "reference-recomputed-from-the-policy",
    check: |bug, budget| bug.check_on::<PolicyUpdate>(answer, Options::default(), budget),
};

fn answer(case: &PolicyUpdateCase<Tensors>) -> PolicyUpdateOutput<Tensors> {
    let training = Training::of(case);
    let logits = grpo(&case.logits, &case.rewards, &Grpo::default(), &training, &mut |_| ());
    // Mended: case.logits.copy()
    let reference = logits.copy();
    PolicyUpdateOutput { logits, ref_logits: Some(reference) }
}
