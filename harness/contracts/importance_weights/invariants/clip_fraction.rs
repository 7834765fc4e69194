//! The share of clipped tokens is what it says.
//!
//! ### Claim
//! clip_fraction is the share of the tokens that are clamped or dropped.
//!
//! ### Why it matters
//! It tells how much of a batch the correction gives up on. A share of all cells falls with the
//! padding, and one that leaves out what was dropped is 0 where everything is.
//!
//! ### Does not hold for
//! Components that do not return it; batches without a token.
//!
//! ### Bugs it has caught
//! Shares of masked arrays, as in trlx; one side of two.
//!
//! ### Example
//! ```diff
//! -    clip_fraction = clipped.to(weights).mean()
//! +    clip_fraction = clipped.to(weights).sum() / tokens
//! ```

use crate::importance_weights::{ImportanceWeights, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::Aggregation,
    &[
        "clip-fraction-over-padding",
        "clip-fraction-of-the-clamped",
        "clip-fraction-of-the-dropped",
        "clip-fraction-above-only",
        "clip-fraction-below-only",
        "clip-fraction-of-the-kept",
        "clip-fraction-is-a-count",
        "clip-fraction-of-rows",
        "clip-fraction-of-token-ratios",
    ],
    check,
);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let returned = probe.output()?;
    let Some(found) = &returned.output.clip_fraction else { return Err(Stop::Vacuous) };
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let expected = probe.expected();
    let expected = expected.iter().find(|expected| expected.field == "clip_fraction");
    let expected = expected.expect("the oracle gives it").numbers[[]];
    let allowed = probe.tolerance.bound(expected, 1);
    near("clip_fraction", found[()], expected.value, allowed)
}
