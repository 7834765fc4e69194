//! The scale of a function does not decide its share.
//!
//! ### Claim
//! A function c times as large in a group adds c(σ + ε)/(cσ + ε) of what it added before.
//!
//! ### Why it matters
//! It is what normalising each function is for: a score of 0 to 100 beside one of 0 and 1 would
//! take all of the gradient. Once the sum is normalised instead, it does so again, unseen.
//!
//! ### Does not hold for
//! `normalise: none`, `divide: false`, `final` other than `none`; functions that scored one row of
//! a group, or all alike.
//!
//! ### Bugs it has caught
//! Sums that are normalised where each function should be; an ε that swallows small scores.
//!
//! ### Example
//! Under `normalise="group"`:
//! ```diff
//! -        combined = standardised_in_groups(combined[:, None], groups)[:, 0]
//! +        combined = weighted_sum(standardised_in_groups(rewards, groups), weights)
//! ```

use super::{given, is_constant, same, scored_together, statistics, weights};
use crate::reward_combination::{Final, Normalise, RewardCombination};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["summed-then-normalised", "functions-normalised-together", "centred-only"],
    check,
)
.under(|options| {
    options.normalise == Normalise::Group && options.divide && options.r#final == Final::None
});

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let mut varied = scored_together(probe.case);
    varied.retain(|(function, rows)| !is_constant(&given(probe.case, rows, *function)));
    if varied.is_empty() {
        return Err(Stop::Vacuous);
    }
    let (function, rows) = probe.pick.one(&varied);
    let times = *probe.pick.one(&[2.0, 0.5, 4.0, 0.25]);
    let mut case = probe.case.clone();
    rows.iter().for_each(|row| case.rewards[[*row, *function]] *= times);
    let before = probe.finite_output()?;
    let after = probe.call(&case)?;
    let weight = weights(probe.options, case.rewards.ncols())[*function];
    let epsilon = probe.options.epsilon;
    let rewards = given(probe.case, rows, *function);
    let (mean, deviation) = statistics(&rewards, probe.options.ddof);
    let mut expected = before.output.combined.clone();
    for (row, reward) in rows.iter().zip(rewards) {
        let z = (reward - mean) / (deviation + epsilon);
        let scaled = times * (deviation + epsilon) / (times * deviation + epsilon);
        expected[*row] += weight * z * (scaled - 1.0);
    }
    let after_it = probe.bounds_in(&probe.expected_of(&case), "combined");
    let allowed = probe.bounds("combined") + after_it;
    let what = format!("with function {function} times {times} in rows {rows:?}");
    same(&what, &after.combined, &expected, &allowed)
}
