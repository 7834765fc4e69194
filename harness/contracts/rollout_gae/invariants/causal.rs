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

use super::super::RolloutGae;
use crate::contract::invariant::Rule;
use crate::contract::probe::broken;
use crate::contract::probe::{Outcome, Probe, Stop};
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::apart;
use crate::value::text::pair;

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
    let bounds = 2.0 * probe.bounds("advantages");
    for at in (step + 1..steps).map(|later| [later, env]) {
        let (found, expected) = (after.advantages[at], before.output.advantages[at]);
        if apart(found, expected, bounds[at]) {
            let [found, expected] = pair(found, expected);
            broken!(
                "with another reward and value at step {step} of environment {env}, \
                 advantages[{}, {env}] is {found}, before it was {expected} ± {:.1e}",
                at[0],
                bounds[at]
            );
        }
    }
    Ok(())
}
