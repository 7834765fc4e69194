//! Too high is as bad as too low.
//!
//! ### Claim
//! Negating values, old values and returns changes nothing.
//!
//! ### Why it matters
//! A squared error and a range that is as wide above as below know no sign. A one-sided one makes
//! the critic an optimist or a pessimist.
//!
//! ### Does not hold for
//! Batches without a token.
//!
//! ### Bugs it has caught
//! No real one yet; clip ranges that reach to one side only break it.
//!
//! ### Example
//! Under `clip=0.2`:
//! ```diff
//! -        held = values.clamp(max=high)
//! +        held = values.clamp(low, high)
//! ```

use super::mapped;
use crate::value_loss::{ValueLoss, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ValueLoss> =
    Rule::new(Pitfall::ProbabilityRatio, &["clipped-from-above-only"], check);

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let negated = mapped(probe.case, |value, old, target| (-value, -old, -target));
    let after = probe.call(&negated)?;
    let allowed = 2.0 * probe.related("loss");
    let what = "with values, old values and returns negated, the loss";
    unchanged(what, &after.loss, &before.output.loss, &allowed)
}
