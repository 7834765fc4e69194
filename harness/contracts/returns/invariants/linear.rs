//! Returns are linear in the rewards.
//!
//! ### Claim
//! Twice the rewards give twice the returns.
//!
//! ### Why it matters
//! A bias, a clamp or a normalisation hidden in the recursion shows here whatever its form.
//!
//! ### Does not hold for
//! Rewards that twice their size would take out of the generated range.
//!
//! ### Bugs it has caught
//! Returns divided by the length of their row still pass; a baseline or a clamp inside does not.

use super::super::Returns;
use crate::contract::invariant::Rule;
use crate::contract::probe::broken;
use crate::contract::probe::{Outcome, Probe};
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::apart;
use crate::value::text::pair;

pub(super) const RULE: Rule<Returns> =
    Rule::new(Pitfall::AdvantageNormalisation, &["rewards-clipped"], check);

fn check(probe: &mut Probe<'_, Returns>) -> Outcome {
    let before = probe.output()?;
    let mut doubled = probe.case.clone();
    for (reward, kept) in doubled.rewards.iter_mut().zip(&probe.case.mask) {
        *reward *= if *kept { 2.0 } else { 1.0 };
    }
    let after = probe.call(&doubled)?;
    let bounds = 4.0 * probe.bounds("returns");
    for ((at, before), kept) in before.output.returns.indexed_iter().zip(&probe.case.mask) {
        let allowed = bounds[[at.0, at.1]];
        if *kept && apart(after.returns[at], 2.0 * before, allowed) {
            let [found, expected] = pair(after.returns[at], 2.0 * before);
            broken!(
                "with twice the rewards, returns[{}, {}] is {found}, expected {expected} ± \
                 {allowed:.1e}",
                at.0,
                at.1
            );
        }
    }
    Ok(())
}
