//! The clip never lowers the loss.
//!
//! ### Claim
//! The loss is never below the one without a clip, nor below 0.
//!
//! ### Why it matters
//! The larger error counts, so that the critic gains nothing by running away from its old values.
//! The smaller one, or the clipped one alone, rewards exactly that.
//!
//! ### Does not hold for
//! Batches without a token.
//!
//! ### Bugs it has caught
//! `min` carried over from the policy loss.
//!
//! ### Example
//! Under `clip=0.2`:
//! ```diff
//! -        errors = torch.minimum(errors, held_errors)
//! +        errors = torch.maximum(errors, held_errors)
//! ```

use super::mapped;
use crate::value_loss::{ValueLoss, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ValueLoss> =
    Rule::new(Pitfall::ProbabilityRatio, &["smaller-error", "clipped-error-only"], check)
        .under(|options| options.clip.is_some());

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let clipped = probe.finite_output()?.output.loss[()];
    // Values that did not move are not clipped.
    let unmoved = mapped(probe.case, |value, _, target| (value, value, target));
    let plain = probe.call(&unmoved)?.loss[()];
    let allowed =
        probe.bounds("loss")[[]] + probe.bounds_in(&probe.expected_of(&unmoved), "loss")[[]];
    if clipped < plain.max(0.0) - allowed {
        let [clipped, plain] = pair(clipped, plain.max(0.0));
        broken!(
            "the loss is {clipped}; where the old values are the values, so that nothing is \
             clipped, it is {plain} ± {allowed:.1e}"
        );
    }
    Ok(())
}
