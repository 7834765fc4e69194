//! What comes after the end of an episode is another story.
//!
//! ### Claim
//! Changing rewards and values after the end of an episode changes nothing up to that end.
//!
//! ### Why it matters
//! The state after an end belongs to the next episode. Its value, or its advantages, flow back into
//! the step that ended the episode, so an agent is paid for dying at a good place to be born.
//!
//! ### Does not hold for
//! Rollouts in which no episode ends before the last step.
//!
//! ### Bugs it has caught
//! SB3 #105: flags read one step off. CleanRL #494: one term of two was cut.
//!
//! ### Example
//! ```diff
//! -    ended = torch.cat([dones[1:], last_dones[None]])
//! +    ended = dones
//! ```

use crate::rollout_gae::RolloutGae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RolloutGae> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "done-flag-shifted",
        "beginnings-read-as-ends",
        "lambda-term-crosses-episodes",
        "carry-crosses-episodes",
        "value-crosses-episodes",
        "dones-ignored",
    ],
    check,
);

fn check(probe: &mut Probe<'_, RolloutGae>) -> Outcome {
    let ends = probe.case.ends(probe.options);
    let steps = ends.nrows();
    let places: Vec<(usize, usize)> = ends
        .indexed_iter()
        .filter(|((step, _), end)| **end && step + 1 < steps)
        .map(|(at, _)| at)
        .collect();
    if places.is_empty() {
        return Err(Stop::Vacuous);
    }
    let (end, env) = *probe.pick.one(&places);
    let before = probe.output()?;
    let mut changed = probe.case.clone();
    for step in end + 1..steps {
        changed.rewards[[step, env]] = *probe.pick.one(&[5.0, -3.0, 64.0]);
        changed.values[[step, env]] = *probe.pick.one(&[-7.0, 2.0, 32.0]);
    }
    let after = probe.call(&changed)?;
    let earlier = |[s, e]: [usize; 2]| s <= end && e == env;
    unchanged(
        format_args!(
            "step {end} ends an episode of environment {env}; with other numbers after it \
             advantages"
        ),
        &after.advantages,
        &before.output.advantages,
        &only(2.0 * probe.bounds("advantages"), earlier),
    )
}
