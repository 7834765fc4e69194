//! A critic that is right has no loss.
//!
//! ### Claim
//! The loss is 0 where values and old values are the returns.
//!
//! ### Why it matters
//! It is what the critic is trained towards. A loss that is not 0 there pulls the values away from
//! the returns.
//!
//! ### Does not hold for
//! Batches without a token.
//!
//! ### Bugs it has caught
//! Returns of the wrong sign; a critic regressed on something else than the returns.
//!
//! ### Example
//! ```diff
//! -    targets = returns - returns.mean()
//! -    errors = (values - targets) ** 2
//! +    errors = (values - returns) ** 2
//! ```

use super::mapped;
use crate::value_loss::{ValueLoss, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ValueLoss> =
    Rule::new(Pitfall::LogSpaceSign, &["sign-of-the-return-flipped"], check);

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let right = mapped(probe.case, |_, _, target| (target, target, target));
    let found = probe.call(&right)?.loss[()];
    let allowed = probe.bounds_in(&probe.expected_of(&right), "loss")[[]];
    near("with values and old values equal to the returns, the loss", found, 0.0, allowed)
}
