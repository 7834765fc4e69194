//! Only differences of log-probabilities matter.
//!
//! ### Claim
//! Subtracting 1 from all log-probabilities of all policies changes nothing.
//!
//! ### Why it matters
//! Ratios and divergences are made of differences. What else depends on a log-probability is a
//! logarithm where a ratio should be, or a policy compared with the wrong one.
//!
//! ### Does not hold for
//! `reinforce` and `cispo`, whose value has the log-probability itself.
//!
//! ### Bugs it has caught
//! Objectives without an importance ratio where one is declared.
//!
//! ### Example
//! ```diff
//! -        losses = -advantages * log_probs
//! +        losses = torch.max(-advantages * ratio, -advantages * clipped)
//! ```

use super::loss_bound;
use ndarray::arr0;

use crate::policy_loss::{Objective, PolicyLoss, PolicyLossCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> =
    Rule::new(Pitfall::LogSpaceSign, &["ratio-of-logarithms"], check)
        .under(|options| options.objective == Objective::PpoClip);

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    let case = probe.case;
    if !case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let mut shifted: PolicyLossCase = case.clone();
    let others = [&mut shifted.log_probs, &mut shifted.old_log_probs];
    for array in others.into_iter().chain(shifted.ref_log_probs.as_mut()) {
        for (x, kept) in array.iter_mut().zip(&case.mask) {
            *x -= if *kept { 1.0 } else { 0.0 };
        }
    }
    let before = probe.output()?;
    let after = probe.call(&shifted)?;
    let expected_after = probe.expected_of(&shifted);
    let expected = probe.expected();
    // Rounding may have changed the differences themselves.
    let moved = expected[0].numbers[[]].value - expected_after[0].numbers[[]].value;
    let allowed = loss_bound(probe, &expected) + loss_bound(probe, &expected_after) + moved.abs();
    let what = "with 1 subtracted from all log-probabilities, loss";
    unchanged(what, &after.loss, &before.output.loss, &arr0(allowed))
}
