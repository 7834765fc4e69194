//! The advantages of a group sum to zero.
//!
//! ### Claim
//! The advantages of a group sum to zero.
//!
//! ### Why it matters
//! A group whose advantages do not cancel pushes all its completions up or down at once, whatever
//! they are worth: the gradient gets a part that has nothing to do with the rewards, and its
//! variance grows.
//!
//! ### Does not hold for
//! `baseline: none`, `scale: loo-std` (every row has a divisor of its own), groups of one.
//!
//! ### Bugs it has caught
//! prime-rl #390: `r - mean/std` for `(r - mean)/std`. Search-R1 9ec2fa9: every row a group of
//! its own.
//!
//! ### Example
//! ```diff
//! -        centred = centred - centred.median()
//! +        centred = centred - centred.mean()
//! ```

use super::several;
use crate::group_advantage::{Baseline, GroupAdvantage, Scale};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["baseline-missing", "mean-over-std-precedence"],
    check,
)
.under(|options| options.baseline != Baseline::None && options.scale != Scale::LooStd);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let returned = probe.finite_output()?;
    let advantages = &returned.output.advantages;
    let bounds = probe.bounds("advantages");
    for (number, rows) in several(probe.case)? {
        let sum: f64 = rows.iter().map(|row| advantages[*row]).sum();
        let allowed: f64 = rows.iter().map(|row| bounds[[*row]]).sum();
        if apart(sum, 0.0, allowed) {
            broken!("group {number} sums to {}, expected 0 ± {allowed:.1e}", rounded(sum));
        }
    }
    Ok(())
}
