//! A leave-one-out advantage is the centred reward, stretched by G/(G - 1).
//!
//! ### Claim
//! With a leave-one-out baseline and no scale, an advantage is G/(G - 1) times the reward less
//! the group mean.
//!
//! ### Why it matters
//! The two are the same estimator up to that factor, so each checks the other: RLOO is unbiased
//! because its own reward is not in its baseline.
//!
//! ### Does not hold for
//! Other baselines and scales; groups of one.
//!
//! ### Bugs it has caught
//! Baselines that hold the own reward, or divide the sum of the others by G.
//!
//! ### Example
//! Under `baseline="leave-one-out", scale="none"`:
//! ```diff
//! -            centred = centred * (len(own) - 1) / len(own)
//! +            centred = centred * len(own) / (len(own) - 1)
//! ```

use super::several;
use crate::group_advantage::{Baseline, GroupAdvantage, Scale};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["own-reward-in-the-baseline", "leave-one-out-divided-by-the-group-size"],
    check,
)
.under(|options| options.baseline == Baseline::LeaveOneOut && options.scale == Scale::None);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let returned = probe.finite_output()?;
    let bounds = probe.bounds("advantages");
    for (number, rows) in several(probe.case)? {
        let size = rows.len() as f64;
        let mean = rows.iter().map(|row| probe.case.rewards[*row]).sum::<f64>() / size;
        for row in rows {
            let centred = probe.case.rewards[row] - mean;
            let (found, expected) =
                (returned.output.advantages[row], size / (size - 1.0) * centred);
            let allowed = 2.0 * bounds[[row]];
            if apart(found, expected, allowed) {
                broken!(
                    "advantages[{row}] of group {number} is {}, expected {size}/{} · {} = {} ± \
                     {allowed:.1e}",
                    rounded(found),
                    size - 1.0,
                    rounded(centred),
                    rounded(expected),
                );
            }
        }
    }
    Ok(())
}
