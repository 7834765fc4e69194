//! GAE is linear in rewards and values.
//!
//! ### Claim
//! Twice the rewards and values give twice the advantages.
//!
//! ### Why it matters
//! A bias, a clamp or a normalisation hidden in the recursion shows here whatever its form.
//!
//! ### Does not hold for
//! Numbers that twice their size would take out of the generated range.
//!
//! ### Bugs it has caught
//! Rewards and TD errors clipped by a default that nobody asked for.
//!
//! ### Example
//! ```diff
//! -        delta = rewards[step].clamp(-1, 1) + gamma * next_values * goes_on - values[step]
//! +        delta = rewards[step] + gamma * next_values * goes_on - values[step]
//! ```

use crate::rollout_gae::RolloutGae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RolloutGae> =
    Rule::new(Pitfall::AdvantageNormalisation, &["td-error-clipped"], check);

fn check(probe: &mut Probe<'_, RolloutGae>) -> Outcome {
    let before = probe.output()?;
    let mut doubled = probe.case.clone();
    doubled.rewards *= 2.0;
    doubled.values *= 2.0;
    doubled.last_values *= 2.0;
    let after = probe.call(&doubled)?;
    let expected = 2.0 * &before.output.advantages;
    let allowed = 4.0 * probe.related("advantages");
    let what = "with twice the rewards and values, advantages";
    close(what, &after.advantages, &expected, &allowed)
}
