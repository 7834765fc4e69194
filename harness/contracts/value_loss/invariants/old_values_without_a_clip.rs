//! Without a clip the old values do not matter.
//!
//! ### Claim
//! Without a clip, other old values change nothing.
//!
//! ### Why it matters
//! A library's default clip that acts although none is declared holds the critic back in silence.
//!
//! ### Does not hold for
//! A declared clip.
//!
//! ### Bugs it has caught
//! Defaults of 0.2 and 0.5 where no clip is declared.
//!
//! ### Example
//! ```diff
//! -    clip = clip or 0.2
//! -    if clip:
//! +    if clip is not None:
//!          low, high = old_values - clip, old_values + clip
//! ```

use super::mapped;
use crate::value_loss::{ValueLoss, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ValueLoss> =
    Rule::new(Pitfall::Configuration, &["clip-although-null"], check)
        .under(|options| options.clip.is_none());

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let amount = *probe.pick.one(&[8.0, -4.0, 64.0]);
    let moved = mapped(probe.case, |value, _, target| (value, amount, target));
    let after = probe.call(&moved)?;
    let allowed = 2.0 * probe.related("loss");
    let what = format_args!("with {amount} for every old value, the loss");
    unchanged(what, &after.loss, &before.output.loss, &allowed)
}
