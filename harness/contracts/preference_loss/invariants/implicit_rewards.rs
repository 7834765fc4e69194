//! Implicit rewards are β times the log-ratio.
//!
//! ### Claim
//! chosen_rewards and rejected_rewards are β·(policy - reference) of their own side.
//!
//! ### Why it matters
//! Accuracy and margin in every DPO log are made of these two. With the sides exchanged a run that
//! goes well looks like one that has collapsed, and the reverse.
//!
//! ### Does not hold for
//! Components that do not return them.
//!
//! ### Bugs it has caught
//! LLaMA-Factory #6050, trl #1402: the two quantities carry each other's name.
//!
//! ### Example
//! ```diff
//! -        "chosen_rewards": beta * (policy_rejected - ref_rejected).detach(),
//! -        "rejected_rewards": beta * (policy_chosen - ref_chosen).detach(),
//! +        "chosen_rewards": beta * (policy_chosen - ref_chosen).detach(),
//! +        "rejected_rewards": beta * (policy_rejected - ref_rejected).detach(),
//! ```

use ndarray::Array1;

use crate::preference_loss::PreferenceLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "chosen-and-rejected-outputs-swapped",
        "rewards-without-beta",
        "rewards-without-the-reference",
    ],
    check,
);

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let returned = probe.output()?;
    let (case, beta) = (probe.case, probe.options.beta);
    let of = |policy: &Array1<f64>, reference: &Array1<f64>| beta * (policy - reference);
    let sides = [
        (
            "chosen_rewards",
            &returned.output.chosen_rewards,
            of(&case.policy_chosen, &case.ref_chosen),
        ),
        (
            "rejected_rewards",
            &returned.output.rejected_rewards,
            of(&case.policy_rejected, &case.ref_rejected),
        ),
    ];
    let mut checked = false;
    for (name, found, expected) in sides {
        let Some(found) = found else { continue };
        checked = true;
        if found.dim() != expected.dim() {
            broken!("{name} has shape {:?}, expected {:?}", found.shape(), expected.shape());
        }
        close(name, found, &expected, &probe.bounds(name))?;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
