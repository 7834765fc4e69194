//! A mean lies between the numbers that it is taken of.
//!
//! ### Claim
//! The mean of a function lies between the least and the largest score that it gave.
//!
//! ### Why it matters
//! These curves are what people look at to see which function learns. Divided by all rows, a
//! function that scores one row in ten looks as if it failed.
//!
//! ### Does not hold for
//! Functions that scored nothing, and components that return no `function_means`.
//!
//! ### Bugs it has caught
//! Sums without NaN, over counts with them; means with the weights in them.
//!
//! ### Example
//! Under `unscored="skip"`:
//! ```diff
//! -        "function_means": rewards.nansum(dim=0) / len(rewards),
//! +        "function_means": rewards.nanmean(dim=0),
//! ```

use crate::reward_combination::RewardCombination;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::Aggregation,
    &["function-mean-over-all-rows", "function-means-weighted"],
    check,
);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let output = probe.output()?.output;
    let Some(means) = &output.function_means else { return Err(Stop::Vacuous) };
    let bounds = probe.bounds("function_means");
    let mut checked = false;
    for (function, column) in probe.case.rewards.columns().into_iter().enumerate() {
        let scores = column.iter().copied().filter(|reward| !reward.is_nan());
        let (least, largest) =
            scores.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(x), hi.max(x)));
        let (mean, allowed) = (means[function], bounds[[function]]);
        if least > largest || mean.is_nan() {
            continue;
        }
        checked = true;
        if mean < least - allowed || mean > largest + allowed {
            broken!(
                "function_means[{function}] is {}, but function {function} gives {} to {}",
                rounded(mean),
                number(least),
                number(largest),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
