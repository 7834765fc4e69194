//! What is carried along belongs to the rows that stay.
//!
//! ### Claim
//! `kept_ids` and `kept_rewards` are those of the rows whose flag is 1, in the order of the rows.
//!
//! ### Why it matters
//! After the filter nobody looks at the flags again. A list that is still that of the batch before
//! it gives each completion the reward of another, and has the right length.
//!
//! ### Does not hold for
//! Components that give the flags alone.
//!
//! ### Bugs it has caught
//! NeMo-RL #3794: the rewards of the unfiltered batch, cut to the right length.
//!
//! ### Example
//! ```diff
//! -    return {"keep": keep, "kept_ids": ids[chosen], "kept_rewards": rewards[: chosen.sum()]}
//! +    return {"keep": keep, "kept_ids": ids[chosen], "kept_rewards": rewards[chosen]}
//! ```

use crate::group_filter::GroupFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "rewards-of-the-unfiltered-batch",
        "ids-of-the-unfiltered-batch",
        "lists-in-the-order-of-groups",
        "rewards-in-another-order",
        "metric-for-the-rewards",
        "positions-for-ids",
        "groups-for-ids",
        "rewards-centred",
        "keep-in-the-order-of-groups",
    ],
    check,
);

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let returned = probe.finite_output()?;
    let output = &returned.output;
    let kept: Vec<usize> = (0..output.keep.len()).filter(|row| output.keep[*row] == 1.0).collect();
    let case = probe.case;
    let dtype = probe.place.dtype;
    let lists = [
        ("kept_ids", &output.kept_ids, kept.iter().map(|row| case.ids[*row] as f64).collect()),
        ("kept_rewards", &output.kept_rewards, kept.iter().map(|row| case.rewards[*row]).collect()),
    ];
    let mut checked = false;
    for (name, found, expected) in lists {
        let expected: Vec<f64> = expected;
        let Some(found) = found else { continue };
        for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
            checked = true;
            // Half formats do not hold every id.
            if found != expected && *found != dtype.round(*expected) {
                let [found, expected] = pair(*found, *expected);
                broken!("{name}[{place}] is {found}, but row {} has {expected}", kept[place]);
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
