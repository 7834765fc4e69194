//! The normalised scores of a group cancel.
//!
//! ### Claim
//! The results of a group sum to zero.
//!
//! ### Why it matters
//! Each function is compared with itself inside the group. What does not cancel pushes all
//! completions of a prompt up or down at once, whatever they are worth.
//!
//! ### Does not hold for
//! `normalise: none`, `final` other than `none`, `singleton: reward`.
//!
//! ### Bugs it has caught
//! prime-rl #390, `r - μ/σ` for `(r - μ)/σ`; scores that are scaled and not centred.
//!
//! ### Example
//! Under `normalise="group"`:
//! ```diff
//! -    return scores - scores.mean() / (scores.std() + 1e-4)
//! +    return centred / (scores.std() + 1e-4)
//! ```

use super::valued;
use crate::reward_combination::{Final, Normalise, RewardCombination, Singleton, members};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["not-centred", "mean-over-std-precedence", "not-normalised"],
    check,
)
.under(|options| {
    options.normalise == Normalise::Group
        && options.r#final == Final::None
        && options.singleton != Singleton::Reward
});

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let combined = &probe.finite_output()?.output.combined;
    let bounds = probe.bounds("combined");
    let valued = valued(probe.case);
    for rows in members(probe.case) {
        let there = || rows.iter().filter(|row| valued.contains(row));
        let sum: f64 = there().map(|row| combined[*row]).sum();
        let allowed: f64 = there().map(|row| bounds[[*row]]).sum();
        let group = probe.case.groups[rows[0]];
        near(format_args!("the sum over group {group}"), sum, 0.0, allowed)?;
    }
    if valued.is_empty() { Err(Stop::Vacuous) } else { Ok(()) }
}
