//! A better completion never gets a smaller advantage.
//!
//! ### Claim
//! Inside a group a larger reward never has the smaller advantage.
//!
//! ### Why it matters
//! The order is the least that a reward says. A flipped sign, or rewards matched to the wrong
//! rows, teach the model to be worse.
//!
//! ### Does not hold for
//! `scale: loo-std` (every row has a divisor of its own).
//!
//! ### Bugs it has caught
//! Sign errors, `mean - r` for `r - mean`; rows left in sorted order (verl #1943).
//!
//! ### Example
//! ```diff
//! -        centred = centred.mean() - centred
//! +        centred = centred - centred.mean()
//! ```

use super::several;
use crate::group_advantage::{GroupAdvantage, Scale};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> =
    Rule::new(Pitfall::LogSpaceSign, &["sign-flipped"], check)
        .under(|options| options.scale != Scale::LooStd);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let returned = probe.finite_output()?;
    let (advantages, rewards) = (&returned.output.advantages, &probe.case.rewards);
    let bounds = probe.bounds("advantages");
    for (number, rows) in several(probe.case)? {
        for better in &rows {
            for worse in rows.iter().filter(|worse| rewards[**worse] < rewards[*better]) {
                let allowed = bounds[[*better]] + bounds[[*worse]];
                if advantages[*better] < advantages[*worse] - allowed {
                    broken!(
                        "in group {number} reward {} has advantage {}, but reward {} has {}",
                        rounded(rewards[*better]),
                        rounded(advantages[*better]),
                        rounded(rewards[*worse]),
                        rounded(advantages[*worse]),
                    );
                }
            }
        }
    }
    Ok(())
}
