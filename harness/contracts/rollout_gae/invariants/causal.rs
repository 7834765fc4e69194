//! What came before a step has no part in its advantage.
//!
//! ### Claim
//! Changing a step's reward or value changes nothing at the steps after it.
//!
//! ### Why it matters
//! A step is credited with what it led to. A recursion from the start, or a value of the step
//! before, credits it with what was there before it was taken.
//!
//! ### Does not hold for
//! Rollouts of one step.
//!
//! ### Bugs it has caught
//! trl #137, in the recursion over completions: the value of the state before the token's own.
//!
//! ### Example
//! ```diff
//! -    for step in range(len(rewards)):
//! +    for step in reversed(range(len(rewards))):
//! ```

use crate::rollout_gae::RolloutGae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RolloutGae> =
    Rule::new(Pitfall::AdvantageNormalisation, &["recursion-from-the-start"], check);

fn check(probe: &mut Probe<'_, RolloutGae>) -> Outcome {
    let (steps, envs) = probe.case.rewards.dim();
    if steps < 2 {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let (step, env) = (probe.pick.below(steps - 1), probe.pick.below(envs));
    let mut changed = probe.case.clone();
    changed.rewards[[step, env]] = *probe.pick.one(&[5.0, -3.0, 64.0]);
    changed.values[[step, env]] = *probe.pick.one(&[-7.0, 2.0, 32.0]);
    let after = probe.call(&changed)?;
    let later = |[s, e]: [usize; 2]| s > step && e == env;
    unchanged(
        format_args!(
            "with another reward and value at step {step} of environment {env}, advantages"
        ),
        &after.advantages,
        &before.output.advantages,
        &only(2.0 * probe.related("advantages"), later),
    )
}
