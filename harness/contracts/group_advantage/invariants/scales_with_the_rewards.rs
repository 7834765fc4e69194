//! Rewards k times as large give advantages that follow from the options.
//!
//! ### Claim
//! Multiplying all rewards by k multiplies the advantages by k(σ + ε)/(kσ + ε), or by k without a
//! scale.
//!
//! ### Why it matters
//! It shows what the division is by, whatever the rewards are: a variance, a range and a clamp
//! all scale differently from a deviation with ε added.
//!
//! ### Does not hold for
//! `epsilon_mode: clamp` with `scale: std`, and the scales over batches and over other rows;
//! factors that leave `reward_range`.
//!
//! ### Bugs it has caught
//! Divisions by the variance; `std` missing where it is declared.
//!
//! ### Example
//! ```diff
//! -            centred = centred / (own.std(correction=ddof).clamp(max=1) + epsilon)
//! +            centred = centred / (own.std(correction=ddof) + epsilon)
//! ```

use super::{deviation, several};
use crate::group_advantage::{EpsilonMode, GroupAdvantage, Options, Scale};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> =
    Rule::new(Pitfall::AdvantageNormalisation, &["divided-by-the-variance", "not-divided"], check)
        .under(|options| {
            options.scale == Scale::None
                || (options.scale == Scale::Std && options.epsilon_mode == EpsilonMode::Add)
        });

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let before = probe.finite_output()?;
    let factor = *probe.pick.one(&[0.5, 0.25, 2.0, 4.0, 0.125]);
    let mut multiplied = probe.case.clone();
    multiplied.rewards *= factor;
    let after = probe.call(&multiplied)?;
    let moved = probe.expected_of(&multiplied);
    let bounds = (probe.bounds("advantages"), probe.bounds_in(&moved, "advantages"));
    let Options { epsilon, ddof, .. } = *probe.options;
    for (number, rows) in several(probe.case)? {
        let stretch = match probe.options.scale {
            Scale::None => factor,
            // Without ε only 0/0 would differ, and a constant group has advantages 0 all the same.
            _ if epsilon == 0.0 => 1.0,
            _ => {
                let sigma = deviation(&probe.case.rewards, &rows, ddof);
                factor * (sigma + epsilon) / (factor * sigma + epsilon)
            }
        };
        for row in rows {
            let (from, to) = (before.output.advantages[row], after.advantages[row]);
            let allowed = bounds.0[[row]] * stretch + bounds.1[[row]];
            if apart(to, stretch * from, allowed) {
                let [found, expected] = pair(to, stretch * from);
                broken!(
                    "with all rewards times {factor}, advantages[{row}] of group {number} goes \
                     from {} to {found}, expected {expected} ± {allowed:.1e}",
                    rounded(from),
                );
            }
        }
    }
    Ok(())
}
