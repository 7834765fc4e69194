//! A group of equal rewards says nothing.
//!
//! ### Claim
//! Equal rewards give advantages of at most 0.05, whatever the reward.
//!
//! ### Why it matters
//! The rounded mean of equal rewards is not always that reward: 0.95 and seven rows at f32 leave
//! 6e-8. With a tiny ε the residue is divided by itself and becomes an advantage of full size,
//! and the policy trains on noise whenever a prompt is too easy or too hard.
//!
//! ### Does not hold for
//! `baseline: none`; half formats; groups of one, or of more than 16.
//!
//! ### Bugs it has caught
//! A missing ε gives NaN, ε = 1e-8 at f32 a residue, an early return on a deviation of 0 the raw
//! reward.
//!
//! ### Example
//! Under `epsilon=1e-8`:
//! ```diff
//! -        centred = own
//! +        centred = own - own[0]  # equal rewards leave no rounding error
//!          centred = centred - centred.mean()
//! ```

use super::several;
use crate::group_advantage::{Baseline, GroupAdvantage};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> = Rule::new(
    Pitfall::StabilityConstant,
    &[
        "epsilon-missing",
        "residue-of-a-rounded-mean",
        "constant-group-keeps-its-reward",
        "constant-group-gets-one",
        "baseline-missing",
    ],
    check,
)
.under(|options| options.baseline != Baseline::None)
.at(|place| matches!(place.dtype, Dtype::F32 | Dtype::F64));

/// Larger groups leave larger residues.
const LARGEST_GROUP: usize = 16;

/// What a group without signal may get.
const LARGEST_ADVANTAGE: f64 = 0.05;

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for (group, rows) in several(probe.case)? {
        let reward = probe.case.rewards[rows[0]];
        if rows.len() > LARGEST_GROUP || rows.iter().any(|row| probe.case.rewards[*row] != reward) {
            continue;
        }
        checked = true;
        for row in rows {
            let advantage = returned.output.advantages[row];
            if apart(advantage, 0.0, LARGEST_ADVANTAGE) {
                broken!(
                    "all rewards of group {group} are {}, but advantages[{row}] is {}, expected 0 \
                     ± {LARGEST_ADVANTAGE}",
                    number(reward),
                    rounded(advantage),
                );
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
