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

use super::super::RolloutGae;
use crate::contract::invariant::Rule;
use crate::contract::probe::broken;
use crate::contract::probe::{Outcome, Probe};
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::apart;
use crate::value::text::pair;

pub(super) const RULE: Rule<RolloutGae> =
    Rule::new(Pitfall::AdvantageNormalisation, &["td-error-clipped"], check);

fn check(probe: &mut Probe<'_, RolloutGae>) -> Outcome {
    let before = probe.output()?;
    let mut doubled = probe.case.clone();
    doubled.rewards *= 2.0;
    doubled.values *= 2.0;
    doubled.last_values *= 2.0;
    let after = probe.call(&doubled)?;
    let bounds = 4.0 * probe.bounds("advantages");
    for ((step, env), before) in before.output.advantages.indexed_iter() {
        let (found, allowed) = (after.advantages[[step, env]], bounds[[step, env]]);
        if apart(found, 2.0 * before, allowed) {
            let [found, expected] = pair(found, 2.0 * before);
            broken!(
                "with twice the rewards and values, advantages[{step}, {env}] is {found}, expected \
                 {expected} ± {allowed:.1e}"
            );
        }
    }
    Ok(())
}
