//! Good rows stay, however far they have drifted.
//!
//! ### Claim
//! A row of advantage 0 or more is never dropped for its drift.
//!
//! ### Why it matters
//! What a drift guards against is pushing down a completion that the policy has left already. To
//! pull up one that is better than expected is safe, and most of what there is to learn.
//!
//! ### Does not hold for
//! `drift: null`; components that do not return `keep`; rows that go for another reason.
//!
//! ### Bugs it has caught
//! A comparison of the drift alone, without the sign of the advantage.
//!
//! ### Example
//! Under `drift=0.5`:
//! ```diff
//! -        keep &= ~drifted
//! +        keep &= ~(drifted & (advantages < 0).unsqueeze(1))
//! ```

use super::tokens;
use crate::importance_weights::ImportanceWeights;
use crate::importance_weights::oracle::Verdict;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::Configuration,
    &[
        "drift-of-any-advantage",
        "drift-or-advantage",
        "drift-of-positive-advantages",
        "drift-of-advantage-zero",
    ],
    check,
)
.under(|options| options.drift.is_some());

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let mut good = probe.case.clone();
    let Some(advantages) = &mut good.advantages else { return Err(Stop::Vacuous) };
    advantages.mapv_inplace(|advantage| if advantage < -0.5 { 0.0 } else { advantage.abs() });
    let tokens = tokens(probe, &good);
    let output = probe.call(&good)?;
    let Some(keep) = &output.keep else { return Err(Stop::Vacuous) };
    let mut checked = false;
    for token in tokens.iter().filter(|token| token.dropped == Verdict::No) {
        let (row, column) = token.at;
        if keep[token.at] == 0.0 {
            let advantage = good.advantages.as_ref().map_or(0.0, |advantages| advantages[row]);
            broken!(
                "with an advantage of {}, keep[{row}, {column}] is false, expected true",
                rounded(advantage)
            );
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
