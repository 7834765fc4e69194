//! Other groups have no influence.
//!
//! ### Claim
//! Other scores in one group change no result of another.
//!
//! ### Why it matters
//! Groups are prompts. A hard prompt that lowers the mean of an easy one compares answers to
//! different questions.
//!
//! ### Does not hold for
//! `final` other than `none`, which whitens over the batch on purpose.
//!
//! ### Bugs it has caught
//! Statistics over the batch where a group is meant; group numbers that are never read.
//!
//! ### Example
//! Under `normalise="group"`:
//! ```diff
//! -            scores[rows, k] = standardised(rewards[:, k])[rows]
//! +            scores[rows, k] = standardised(rewards[rows, k])
//! ```

use super::same;
use crate::reward_combination::{Final, RewardCombination, members};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["normalised-over-the-batch", "groups-assumed-contiguous", "groups-strided", "whitened"],
    check,
)
.under(|options| options.r#final == Final::None);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let groups = members(probe.case);
    if groups.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let changed = &groups[probe.pick.below(groups.len())];
    let mut case = probe.case.clone();
    for (place, row) in changed.iter().enumerate() {
        for reward in case.rewards.row_mut(*row).iter_mut().filter(|reward| !reward.is_nan()) {
            *reward = if place == 0 { 8.0 } else { -7.0 };
        }
    }
    let after = probe.call(&case)?;
    let allowed = only(2.0 * probe.related("combined"), |[row]| !changed.contains(&row));
    let what = format!("with other scores in rows {changed:?}");
    same(&what, &after.combined, &before.output.combined, &allowed)
}
