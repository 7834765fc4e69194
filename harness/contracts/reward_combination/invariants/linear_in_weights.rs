//! A function counts as much as its weight says.
//!
//! ### Claim
//! The same scores from another function add what its weight says; doubled weights double.
//!
//! ### Why it matters
//! Weights are tuned by hand, one run after the other. When they are lost, each of these runs has
//! trained the same mixture, and the bonus for the format counts as much as the answer.
//!
//! ### Does not hold for
//! `final` other than `none`. That everything doubles: components that do not take `weights` by
//! name, and `weight_norm: sum`. Weights that are all equal say nothing else.
//!
//! ### Bugs it has caught
//! atropos #485, ms-swift #2167: the weights live in a wrapper that the combiner does not call.
//!
//! ### Example
//! ```diff
//! -        total += scores[:, k].nan_to_num()
//! +        total += weight * scores[:, k].nan_to_num()
//! ```

use super::same;
use crate::reward_combination::{
    Final, Options, RewardCombination, RewardCombinationCase, WeightNorm,
};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::Configuration,
    &[
        "weights-lost",
        "weights-applied-twice",
        "negative-weights-lost",
        "weighted-before-normalising",
    ],
    check,
)
.under(|options| options.r#final == Final::None);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let weights = probe.options.raw_weights(probe.case.rewards.ncols());
    let doubled = doubles(probe, &weights)?;
    let first = probe.pick.below(weights.len());
    let others = (0..weights.len()).filter(|k| weights[*k] != weights[first]);
    let others: Vec<usize> = others.collect();
    if others.is_empty() {
        return if doubled { Ok(()) } else { Err(Stop::Vacuous) };
    }
    let second = *probe.pick.one(&others);
    // All other functions are silent, so that nothing is added but what these scores are worth.
    let scores = probe.case.rewards.column(first).to_owned();
    let alone = |function: usize| {
        let mut case: RewardCombinationCase = RewardCombinationCase {
            rewards: probe.case.rewards.mapv(|_| 0.0),
            groups: probe.case.groups.clone(),
        };
        case.rewards.column_mut(function).assign(&scores);
        case
    };
    let cases = [alone(first), alone(second)];
    let [here, there] = [probe.call(&cases[0])?.combined, probe.call(&cases[1])?.combined];
    let bounds = |probe: &Probe<'_, RewardCombination>, case| {
        probe.bounds_in(&probe.expected_of(case), "combined")
    };
    let allowed = bounds(probe, &cases[0]) * weights[second].abs()
        + bounds(probe, &cases[1]) * weights[first].abs();
    for row in 0..here.len() {
        let (found, expected) = (there[row] * weights[first], here[row] * weights[second]);
        if !(found.is_nan() && expected.is_nan()) && apart(found, expected, allowed[[row]]) {
            broken!(
                "row {row} is worth {} by function {first} alone and {} by function {second} \
                 alone, of which the weights are {} and {}",
                rounded(here[row]),
                rounded(there[row]),
                number(weights[first]),
                number(weights[second]),
            );
        }
    }
    Ok(())
}

/// Whether it was checked that doubled weights double the result.
fn doubles(probe: &mut Probe<'_, RewardCombination>, weights: &[f64]) -> Result<bool, Stop> {
    if !probe.reads("weights") || probe.options.weight_norm != WeightNorm::None {
        return Ok(false);
    }
    let twice: Vec<f64> = weights.iter().map(|weight| 2.0 * weight).collect();
    let options = Options { weights: Some(twice), ..probe.options.clone() };
    if shakedown_core::contract::options::Options::check(&options).is_err() {
        return Ok(false);
    }
    let before = probe.finite_output()?;
    let after = match probe.call_under(probe.case, &options) {
        Err(Stop::Vacuous) => return Ok(false),
        after => after?,
    };
    let allowed = 4.0 * probe.related("combined");
    let expected = before.output.combined.mapv(|x| 2.0 * x);
    same("with all weights doubled", &after.combined, &expected, &allowed)?;
    Ok(true)
}
