//! Other groups have no influence.
//!
//! ### Claim
//! Changing the rewards of one group changes no advantage of another.
//!
//! ### Why it matters
//! Groups are prompts. When a hard prompt lowers the baseline of an easy one, completions are
//! compared across questions.
//!
//! ### Does not hold for
//! `scale: batch-std`, which takes the deviation of the whole batch.
//!
//! ### Bugs it has caught
//! Statistics over the batch where a group is meant; group numbers that are never read.
//!
//! ### Example
//! ```diff
//! -            centred = centred / (rewards.std(correction=ddof) + epsilon)
//! +            centred = centred / (own.std(correction=ddof) + epsilon)
//! ```

use crate::group_advantage::{GroupAdvantage, Scale, members};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["groups-ignored", "batch-mean-as-baseline"],
    check,
)
.under(|options| options.scale != Scale::BatchStd);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let groups = members(probe.case);
    if groups.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let changed = &groups[probe.pick.below(groups.len())];
    let [lo, hi] = probe.options.reward_range.map(|end| probe.place.dtype.round(end));
    let mut case = probe.case.clone();
    for (place, row) in changed.iter().enumerate() {
        case.rewards[*row] = if place == 0 { hi } else { lo };
    }
    let after = probe.call(&case)?;
    let mut allowed = 2.0 * probe.related("advantages");
    changed.iter().for_each(|row| allowed[[*row]] = f64::INFINITY);
    let what = format_args!("with other rewards in rows {changed:?}, advantages");
    close(what, &after.advantages, &before.output.advantages, &allowed)
}
