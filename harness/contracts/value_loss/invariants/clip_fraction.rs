//! The share of clipped tokens is what it says.
//!
//! ### Claim
//! clip_fraction is the share of the tokens whose clipped error is the larger.
//!
//! ### Why it matters
//! It tells whether the critic moves too fast. A share of all cells shrinks with the padding, and
//! one that counts every value that moved far also counts those whose own error decides.
//!
//! ### Does not hold for
//! Components that do not return it; tokens whose clipping rounding decides; batches without a
//! token.
//!
//! ### Bugs it has caught
//! slime counts |V - V_old| > c; trlx took means of masked arrays.
//!
//! ### Example
//! Under `clip=0.2`:
//! ```diff
//! -        clipped = ((values - old_values).abs() > clip).to(errors.dtype)
//! +        clipped = (held_errors > errors).to(errors.dtype)
//! ```

use crate::value_loss::{ValueLoss, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ValueLoss> = Rule::new(
    Pitfall::Aggregation,
    &["moved-values-counted-as-clipped", "clip-fraction-over-padding"],
    check,
);

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
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
