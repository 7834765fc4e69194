//! With weights that are divided by their sum, the result is a mean.
//!
//! ### Claim
//! Where all functions give a row the same score, the row gets that score.
//!
//! ### Why it matters
//! Dividing by the sum of the weights is meant to keep the reward at one scale, however many
//! functions there are. Divided by something else it is neither a sum nor a mean.
//!
//! ### Does not hold for
//! `weight_norm: none`, `normalise: group`, `final` other than `none`.
//!
//! ### Bugs it has caught
//! atropos #485: the weights in the denominator only.
//!
//! ### Example
//! Under `weights=[1.0, 0.5], weight_norm="sum"`:
//! ```diff
//! -        weights = [weight / len(weights) for weight in weights]
//! +        weights = [weight / sum(weights) for weight in weights]
//! ```

use super::same;
use crate::reward_combination::{Final, Normalise, Nothing, RewardCombination, WeightNorm};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::Aggregation,
    &["weights-in-the-denominator-only", "weights-not-normalised", "weights-of-magnitude-one"],
    check,
)
.under(|options| {
    options.weight_norm == WeightNorm::Sum
        && options.normalise == Normalise::None
        && options.r#final == Final::None
});

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let mut case = probe.case.clone();
    let function = probe.pick.below(case.rewards.ncols());
    let scores = case.rewards.column(function).to_owned();
    for mut column in case.rewards.columns_mut() {
        column.assign(&scores);
    }
    let after = probe.call(&case)?;
    let zero = probe.options.nothing == Nothing::Zero;
    let expected = scores.mapv(|score| if score.is_nan() && zero { 0.0 } else { score });
    let allowed = probe.bounds_in(&probe.expected_of(&case), "combined");
    same("where all functions agree", &after.combined, &expected, &allowed)
}
