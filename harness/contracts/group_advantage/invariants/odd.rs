//! Rewards with the opposite sign give advantages with the opposite sign.
//!
//! ### Claim
//! Negating all rewards negates all advantages.
//!
//! ### Why it matters
//! Every estimator is a linear map divided by something even. A clipped, one-sided or rank-based
//! one is not, and learns only from one side.
//!
//! ### Does not hold for
//! A `reward_range` that does not hold the negated rewards.
//!
//! ### Bugs it has caught
//! Advantages cut off at zero, which turn GRPO into rejection sampling.

use super::super::{GroupAdvantage, GroupAdvantageCase, GroupAdvantageOutput};
use super::unchanged_everywhere;
use crate::contract::invariant::Rule;
use crate::contract::probe::{Outcome, Probe};
use crate::contract::stage::Pitfall;

pub(super) const RULE: Rule<GroupAdvantage> =
    Rule::new(Pitfall::AdvantageNormalisation, &["negative-advantages-dropped"], check);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let before = probe.finite_output()?;
    let negated = GroupAdvantageCase { rewards: -&probe.case.rewards, ..probe.case.clone() };
    let after = probe.call(&negated)?;
    let back = GroupAdvantageOutput { advantages: -&after.advantages };
    let allowed = 2.0 * probe.bounds("advantages");
    unchanged_everywhere(&before.output, &back, &allowed, |row| {
        format!("with all rewards negated, -advantages[{row}]")
    })
}
