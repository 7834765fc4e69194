//! A constant added to all rewards changes nothing.
//!
//! ### Claim
//! Adding one constant to all rewards changes no advantage.
//!
//! ### Why it matters
//! A baseline exists to make the level of the rewards irrelevant: a reward model that scores 7 to
//! 9 must train as one that scores 0 to 2.
//!
//! ### Does not hold for
//! `baseline: none`; groups of one that keep their reward; constants that leave `reward_range`,
//! or that rounding would change.
//!
//! ### Bugs it has caught
//! prime-rl #390 and Search-R1 9ec2fa9 are not shift-invariant.
//!
//! ### Example
//! ```diff
//! -        centred = own - own.clamp(min=0).mean()
//! +        centred = own - own[0]  # equal rewards leave no rounding error
//! +        centred = centred - centred.mean()
//! ```

use super::several;
use crate::group_advantage::{Baseline, GroupAdvantage};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["baseline-missing", "mean-over-std-precedence", "every-row-its-own-group"],
    check,
)
.under(|options| options.baseline != Baseline::None);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let before = probe.finite_output()?;
    let amounts = [1.0, -1.0, 2.0, -4.0, 0.5, 4.0, -8.0, 8.0];
    for _ in 0..3 {
        let amount = *probe.pick.one(&amounts);
        let mut shifted = probe.case.clone();
        shifted.rewards += amount;
        let exact =
            shifted.rewards.iter().zip(&probe.case.rewards).all(|(to, from)| {
                from.is_nan() || (*to - amount == *from && *to - *from == amount)
            });
        if !exact {
            continue;
        }
        let after = match probe.call(&shifted) {
            Err(Stop::Vacuous) => continue,
            other => other?,
        };
        let moved = probe.expected_of(&shifted);
        let allowed = probe.related("advantages") + probe.bounds_in(&moved, "advantages");
        let groups = several(probe.case)?;
        let grouped = |[row]: [usize; 1]| groups.iter().any(|(_, rows)| rows.contains(&row));
        return close(
            format_args!("with {amount} added to every reward, advantages"),
            &after.advantages,
            &before.output.advantages,
            &only(allowed, grouped),
        );
    }
    Err(Stop::Vacuous)
}
