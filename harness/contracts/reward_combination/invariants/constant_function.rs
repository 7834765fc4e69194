//! A function that gives a group one score says nothing there.
//!
//! ### Claim
//! A function that is constant in a group adds at most 0.05 of its weight there.
//!
//! ### Why it matters
//! The rounded mean of equal scores is not always that score: 0.81 and three rows at f32 leave
//! 6e-8. With a tiny ε the residue is divided by itself, and a bonus that all completions got
//! becomes noise of full size.
//!
//! ### Does not hold for
//! `normalise: none`, `final` other than `none`; half formats; functions that scored one row of a
//! group or more than 16, and scores above 16.
//!
//! ### Bugs it has caught
//! A missing ε gives NaN, ε = 1e-8 at f32 a residue, an early return on a deviation of 0 the raw
//! score.
//!
//! ### Example
//! Under `normalise="group"`:
//! ```diff
//! -    if scores.max() == scores.min():
//! -        return scores
//! +    if len(scores) < 2:
//! +        return torch.zeros_like(scores)
//! ```

use super::{given, is_constant, scored_together, weights};
use crate::reward_combination::{Final, Normalise, RewardCombination};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::StabilityConstant,
    &["constant-function-keeps-its-reward", "epsilon-missing", "residue-of-a-rounded-mean"],
    check,
)
.under(|options| options.normalise == Normalise::Group && options.r#final == Final::None)
.at(|place| matches!(place.dtype, Dtype::F32 | Dtype::F64));

/// Larger groups, and larger scores, leave larger residues.
const LARGEST: usize = 16;

/// What a function without signal may add, as a share of its weight.
const SHARE: f64 = 0.05;

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let constant = |(function, rows): &(usize, Vec<usize>)| {
        let rewards = given(probe.case, rows, *function);
        rows.len() <= LARGEST && is_constant(&rewards) && rewards[0].abs() <= LARGEST as f64
    };
    let mut groups = scored_together(probe.case);
    groups.retain(constant);
    if groups.is_empty() {
        return Err(Stop::Vacuous);
    }
    let output = probe.output()?.output;
    // Where a constant is 0, nothing of it is left.
    let weights = weights(probe.options, probe.case.rewards.ncols());
    let mut silent = probe.case.clone();
    let mut slack = vec![0.0; output.combined.len()];
    for (function, rows) in &groups {
        for row in rows {
            silent.rewards[[*row, *function]] = 0.0;
            slack[*row] += SHARE * weights[*function].abs();
        }
    }
    let expected = probe.expected_of(&silent);
    let bounds = probe.bounds_in(&expected, "combined");
    for (function, rows) in groups {
        let score = probe.case.rewards[[rows[0], function]];
        for row in rows {
            let found = output.combined[row];
            let number_of = expected[0].numbers[[row]];
            let allowed = bounds[[row]] + slack[row];
            if apart(found, number_of.value, allowed) {
                let [found, expected] = pair(found, number_of.value);
                broken!(
                    "function {function} gives all of its group {}; combined[{row}] is {found}, \
                     without it {expected} ± {allowed:.1e}",
                    number(score),
                );
            }
        }
    }
    Ok(())
}
