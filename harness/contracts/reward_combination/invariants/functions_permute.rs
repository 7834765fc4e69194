//! The order of the functions has no meaning.
//!
//! ### Claim
//! Functions in another order, each with its weight, change nothing but the order of their means.
//!
//! ### Why it matters
//! Reward functions come from a list, a dictionary, a folder. One that counts more because it
//! comes last, or has its neighbour's weight, is found by nobody who reads the curves.
//!
//! ### Does not hold for
//! Functions of different weight, where a component does not take `weights` by name: then those
//! of equal weight are exchanged. A single function.
//!
//! ### Bugs it has caught
//! Functions that overwrite each other; a loop that ends before the last one.
//!
//! ### Example
//! ```diff
//! -        total = weight * scores[:, k].nan_to_num()
//! +        total += weight * scores[:, k].nan_to_num()
//! ```

use super::same;
use crate::reward_combination::{Options, RewardCombination};
use shakedown_core::contract::prelude::*;
use shakedown_core::contract::rows::select;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::Aggregation,
    &["last-function-only", "first-function-only", "last-function-left-out"],
    check,
);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let weights = probe.options.raw_weights(probe.case.rewards.ncols());
    let order = match probe.reads("weights") {
        true => probe.pick.shuffled(weights.len()),
        false => exchanged(&weights, probe),
    };
    if order.is_sorted() {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let case = select::<RewardCombination, _>(probe.case, 'K', &order);
    let moved = order.iter().map(|function| weights[*function]).collect();
    let after = match probe.options.weights.is_some() && moved != weights {
        true => {
            let options = Options { weights: Some(moved), ..probe.options.clone() };
            probe.call_under(&case, &options)?
        }
        false => probe.call(&case)?,
    };
    let what = format!("with the functions in the order {order:?}");
    let allowed = 2.0 * probe.related("combined");
    same(&what, &after.combined, &before.output.combined, &allowed)?;
    let (Some(means), Some(of_before)) = (&after.function_means, &before.output.function_means)
    else {
        return Ok(());
    };
    let allowed = 2.0 * probe.bounds("function_means");
    for (place, function) in order.iter().enumerate() {
        let (found, expected) = (means[place], of_before[*function]);
        if !(found.is_nan() && expected.is_nan()) {
            let what = format_args!("{what}, function_means[{place}]");
            near(what, found, expected, allowed[[*function]])?;
        }
    }
    Ok(())
}

/// An order in which only functions of equal weight change their places.
fn exchanged(weights: &[f64], probe: &mut Probe<'_, RewardCombination>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    let weight = weights[probe.pick.below(weights.len())];
    let alike: Vec<usize> = order.iter().copied().filter(|k| weights[*k] == weight).collect();
    for (place, other) in probe.pick.shuffled(alike.len()).into_iter().enumerate() {
        order[alike[place]] = alike[other];
    }
    order
}
