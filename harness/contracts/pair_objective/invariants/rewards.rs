//! Rewards are β times what the objective says of a side.
//!
//! ### Claim
//! Rewards are β·(policy - reference) of their side; β·average for `orpo` and `simpo`.
//!
//! ### Why it matters
//! Accuracy and margin in the log are made of these two. With the sides exchanged a run that goes
//! well looks like one that has collapsed; from sums, the longer completion wins.
//!
//! ### Does not hold for
//! Components that do not return them.
//!
//! ### Bugs it has caught
//! LLaMA-Factory #6050, trl #1402: the two quantities carry each other's name.
//!
//! ### Example
//! ```diff
//! -    chosen_reward, rejected_reward = beta * policy_chosen, beta * policy_rejected
//! +    chosen_reward, rejected_reward = beta * chosen, beta * rejected
//! ```

use ndarray::Array1;

use crate::pair_objective::PairObjective;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "simpo-rewards-of-sums",
        "rewards-exchanged",
        "rewards-without-beta",
        "rewards-without-the-reference",
        "rewards-with-the-reference",
        "rewards-of-averages",
    ],
    check,
);

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let returned = probe.output()?;
    let (case, beta, kind) = (probe.case, probe.options.beta, probe.options.kind);
    let of = |policy: &Array1<f64>, reference: &Array1<f64>, lengths: &Array1<i64>| {
        let number = |at: usize| match kind.has_reference() {
            true => beta * (policy[at] - reference[at]),
            false => beta * policy[at] / lengths[at] as f64,
        };
        (0..policy.len()).map(number).collect::<Array1<f64>>()
    };
    let sides = [
        (
            "chosen_rewards",
            &returned.output.chosen_rewards,
            of(&case.policy_chosen, &case.ref_chosen, &case.chosen_lengths),
        ),
        (
            "rejected_rewards",
            &returned.output.rejected_rewards,
            of(&case.policy_rejected, &case.ref_rejected, &case.rejected_lengths),
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
