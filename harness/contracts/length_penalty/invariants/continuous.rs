//! A linear penalty does not jump.
//!
//! ### Claim
//! At both knees of a linear penalty one token changes it by its slope, 1/C, at the most.
//!
//! ### Why it matters
//! The line is there so that a token more or less makes a small difference. A jump at either end is
//! the step that the buffer was meant to soften.
//!
//! ### Does not hold for
//! `cosine` and `step`; a buffer of 0.
//!
//! ### Bugs it has caught
//! A quotient by the limit for one by the buffer; integer division.
//!
//! ### Example
//! ```diff
//! -        rewards = -(over // buffer).clamp(min=0)
//! +        rewards = -(over / buffer).clamp(min=0)
//! ```

use crate::length_penalty::{LengthPenalty, LengthPenaltyCase, Options, Shape};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<LengthPenalty> = Rule::new(
    Pitfall::Configuration,
    &["line-over-the-limit", "whole-steps-only", "whole-steps-towards-zero", "beyond-is-free"],
    check,
)
.under(|options| {
    let linear = matches!(options.shape, Shape::LinearOverlong | Shape::LinearUnbounded);
    linear && options.buffer > 0
});

fn check(probe: &mut Probe<'_, LengthPenalty>) -> Outcome {
    let Options { max_length, buffer, factor, .. } = *probe.options;
    let knees = [max_length - buffer, max_length];
    let near = |length: i64| knees.iter().find(|knee| (**knee - 1..=**knee).contains(&length));
    if probe.case.lengths.iter().all(|length| near(*length).is_none()) {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let longer = LengthPenaltyCase { lengths: &probe.case.lengths + 1 };
    let after = probe.call(&longer)?;
    let bounds = probe.bounds("rewards") + probe.bounds_in(&probe.expected_of(&longer), "rewards");
    for (row, length) in probe.case.lengths.indexed_iter() {
        let Some(knee) = near(*length) else { continue };
        let [first, second] = [before.output.rewards[row], after.rewards[row]];
        let allowed = factor / buffer as f64 + bounds[row];
        if apart(second, first, allowed) {
            broken!(
                "completions of {length} and {} tokens get {} and {}, expected them within \
                 {allowed:.3}: the knee is at {knee}",
                length + 1,
                rounded(first),
                rounded(second),
            );
        }
    }
    Ok(())
}
