//! A function of weight 0 says nothing.
//!
//! ### Claim
//! Whatever a function of weight 0 gives to rows that others score, the result stays the same.
//!
//! ### Why it matters
//! A weight of 0 keeps a function in the logs and out of the training. It is also the function
//! that nobody watches: when it fails and gives NaN, 0 times NaN is NaN.
//!
//! ### Does not hold for
//! Weights without a 0. NaN is tried under `unscored: skip` alone.
//!
//! ### Bugs it has caught
//! Sums of products with NaN among them; `weight or 1.0`, where 0 is false.
//!
//! ### Example
//! Under `weights=[1.0, 0.0]`:
//! ```diff
//! -        total += (weight or 1.0) * scores[:, k].nan_to_num()
//! +        total += weight * scores[:, k].nan_to_num()
//! ```

use super::same;
use crate::reward_combination::{RewardCombination, Unscored};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> =
    Rule::new(Pitfall::Configuration, &["zero-weight-is-one", "zero-weight-poisons"], check)
        .under(|options| options.weights.as_ref().is_some_and(|weights| weights.contains(&0.0)));

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let weights = probe.options.raw_weights(probe.case.rewards.ncols());
    let silent: Vec<usize> = (0..weights.len()).filter(|k| weights[*k] == 0.0).collect();
    let function = *probe.pick.one(&silent);
    let numbers: &[f64] = match probe.options.unscored {
        Unscored::Skip => &[f64::NAN, 2.0, f64::NAN, -5.0],
        Unscored::Avoid => &[0.0, 2.0, 1.0, -5.0],
    };
    let mut case = probe.case.clone();
    let mut changed = false;
    for mut rewards in case.rewards.rows_mut() {
        let others = (0..weights.len()).filter(|k| *k != function);
        if others.into_iter().any(|k| !rewards[k].is_nan()) {
            rewards[function] = *probe.pick.one(numbers);
            changed = true;
        }
    }
    if !changed {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let after = probe.call(&case)?;
    let what = format!("with other scores of function {function}, which has weight 0");
    let allowed = 2.0 * probe.related("combined");
    same(&what, &after.combined, &before.output.combined, &allowed)?;
    if let (Some(found), Some(expected)) = (&after.reward_mean, &before.output.reward_mean)
        && !(found[()].is_nan() && expected[()].is_nan())
    {
        let allowed = 2.0 * probe.related("reward_mean").sum();
        near(format_args!("{what}, reward_mean"), found[()], expected[()], allowed)?;
    }
    Ok(())
}
