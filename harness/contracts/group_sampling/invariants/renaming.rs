//! Which prompt stands where makes no difference to the order.
//!
//! ### Claim
//! Other ids at the same places give the same rows, with the ids renamed.
//!
//! ### Why it matters
//! The order is made of places and of the seed. One that depends on the ids sorts them, or treats
//! kinds of prompts apart, and two runs on two versions of the data are not comparable.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! slime #2237: long prompts behind the short ones; `unique()`, which sorts.
//!
//! ### Example
//! ```diff
//! -    return prompts.unique()[torch.cat(rows)]
//! +    return prompts[torch.cat(rows)]
//! ```

use crate::group_sampling::GroupSampling;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupSampling> = Rule::new(
    Pitfall::Configuration,
    &["ordered-by-kind", "sorted", "sorted-by-a-hash", "indices-for-ids"],
    check,
);

fn check(probe: &mut Probe<'_, GroupSampling>) -> Outcome {
    let before = probe.output()?;
    let count = probe.case.prompts.len();
    let other = |id: usize| (count - 1 - id) as i64 * 3 + 1;
    let mut renamed = probe.case.clone();
    for (place, id) in renamed.prompts.iter_mut().enumerate() {
        *id = other(place);
    }
    if renamed == *probe.case {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&renamed)?;
    let place = |id: f64| probe.case.prompts.iter().position(|prompt| *prompt as f64 == id);
    for (row, (id, found)) in before.output.rows.iter().zip(&after.rows).enumerate() {
        // The law about known prompts says so where it is none.
        let Some(place) = place(*id) else { return Err(Stop::Vacuous) };
        let expected = renamed.prompts[place];
        if *found != expected as f64 {
            broken!(
                "with {} for prompt {}, rows[{row}] is {}, expected {expected}",
                expected,
                number(*id),
                number(*found)
            );
        }
    }
    Ok(())
}
