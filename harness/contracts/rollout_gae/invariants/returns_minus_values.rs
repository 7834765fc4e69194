//! Returns and advantages are one thing.
//!
//! ### Claim
//! The advantages are the returns less the values.
//!
//! ### Why it matters
//! The critic is trained on the returns and the policy on the advantages. Where they part, one of
//! the two follows a target that the other knows nothing of.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! CleanRL #337: returns made of the advantages of the round before.
//!
//! ### Example
//! ```diff
//! -        returns[step] = advantages[step] + values[step]
//!          advantages[step] = carried
//! +        returns[step] = advantages[step] + values[step]
//! ```

use crate::rollout_gae::RolloutGae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RolloutGae> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["returns-from-stale-advantages", "returns-without-lambda"],
    check,
);

fn check(probe: &mut Probe<'_, RolloutGae>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("advantages") + probe.bounds("returns");
    for ((step, env), found) in returned.output.advantages.indexed_iter() {
        let at = [step, env];
        let (target, value) = (returned.output.returns[at], probe.case.values[at]);
        let expected = target - value;
        // The outputs of a wrong component may be larger than the oracle knows.
        let own = Number::new(target, target.abs() + value.abs());
        let allowed = bounds[at] + probe.tolerance.bound(own, 1);
        if apart(*found, expected, allowed) {
            let [found, expected] = pair(*found, expected);
            broken!(
                "advantages[{step}, {env}] is {found}, but returns less values make {expected} ± \
                 {allowed:.1e}"
            );
        }
    }
    Ok(())
}
