//! The metric decides, and the rewards do not.
//!
//! ### Claim
//! Other rewards change no flag.
//!
//! ### Why it matters
//! Rewards are shaped: a penalty for length makes every group differ. Whoever filters by the answer
//! being right hands in what says so, and the rewards to train with beside it.
//!
//! ### Does not hold for
//! What is carried along: the rewards of the rows that stay.
//!
//! ### Bugs it has caught
//! verl-recipe #125: groups of wrong answers stay since their lengths differ.
//!
//! ### Example
//! ```diff
//! -        own = rewards[rows]
//! +        own = metric[rows]
//! ```

use crate::group_filter::{GroupFilter, GroupFilterCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &["rewards-decide", "range-of-the-rewards", "group-falls-apart"],
    check,
);

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let before = probe.output()?;
    let mut changed: GroupFilterCase = probe.case.clone();
    for reward in &mut changed.rewards {
        *reward = *probe.pick.one(&[0.0, 1.0, -1.0, 0.5, 8.0]);
    }
    let after = probe.call(&changed)?;
    for (row, (after, before)) in after.keep.iter().zip(&before.output.keep).enumerate() {
        if after != before {
            let [after, before] = [after, before].map(|flag| number(*flag));
            broken!("with other rewards, keep[{row}] is {after}, before it was {before}");
        }
    }
    Ok(())
}
