//! Episodes one after the other are episodes.
//!
//! ### Claim
//! A rollout gives what its parts up to and from the end of an episode give one at a time.
//!
//! ### Why it matters
//! Where a window begins and ends is an accident of the collector. Only ends of episodes matter,
//! and at them a rollout may be cut and put together again.
//!
//! ### Does not hold for
//! Rollouts in which no episode ends before the last step.
//!
//! ### Bugs it has caught
//! SB3 #105, CleanRL #494: the next episode leads into the one before.
//!
//! ### Example
//! Under `done_convention="before"`:
//! ```diff
//! -        ended = dones
//! +        ended = torch.cat([dones[1:], last_dones[None]])
//! ```

use crate::rollout_gae::{RolloutGae, RolloutGaeCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RolloutGae> = Rule::new(
    Pitfall::MaskingAlignment,
    &["done-flag-shifted", "beginnings-read-as-ends", "lambda-term-crosses-episodes"],
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
    let whole = probe.output()?;
    let bounds = 2.0 * probe.bounds("advantages");
    let alone: RolloutGaeCase = RolloutGae::take(probe.case, &[env]);
    let part = |steps: std::ops::Range<usize>| {
        rows::select::<RolloutGae, RolloutGaeCase>(&alone, 'T', &steps.collect::<Vec<_>>())
    };
    let mut first = part(0..end + 1);
    // The first part ended its episode, so what follows is nobody's business.
    first.last_dones.fill(true);
    first.last_values.fill(*probe.pick.one(&[3.0, -2.0, 0.0]));
    for (from, part) in [(0, first), (end + 1, part(end + 1..steps))] {
        let alone = probe.call(&part)?;
        for (step, found) in alone.advantages.column(0).iter().enumerate() {
            let at = [from + step, env];
            let expected = whole.output.advantages[at];
            if apart(*found, expected, bounds[at]) {
                let [found, expected] = pair(*found, expected);
                broken!(
                    "advantages[{}, {env}] is {expected}; cut after step {end}, which ends an \
                     episode, the rollout gives {found} there; allowed difference {:.1e}",
                    at[0],
                    bounds[at]
                );
            }
        }
    }
    Ok(())
}
