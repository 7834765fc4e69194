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
//!
//! ### Example
//! ```diff
//! -        advantages[rows] = centred.clamp(min=0)
//! +        advantages[rows] = centred
//! ```

use crate::group_advantage::{GroupAdvantage, GroupAdvantageCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> =
    Rule::new(Pitfall::AdvantageNormalisation, &["negative-advantages-dropped"], check);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let before = probe.finite_output()?;
    let negated = GroupAdvantageCase { rewards: -&probe.case.rewards, ..probe.case.clone() };
    let after = probe.call(&negated)?;
    let allowed = 2.0 * probe.related("advantages");
    let what = "with all rewards negated, -advantages";
    close(what, &-after.advantages, &before.output.advantages, &allowed)
}
