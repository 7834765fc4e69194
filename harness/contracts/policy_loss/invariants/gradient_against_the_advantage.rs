//! The gradient of a token points against its advantage.
//!
//! ### Claim
//! The gradient at a token is at most 0 if A > 0, at least 0 if A < 0, and 0 if A = 0.
//!
//! ### Why it matters
//! A step goes against the gradient: so a good token becomes more likely and a bad one less,
//! whatever the ratio and however it is clipped.
//!
//! ### Does not hold for
//! `beta` > 0, where the reference pulls too.
//!
//! ### Bugs it has caught
//! unsloth-zoo #343: a weight that was not detached added a gradient of its own, with the sign of
//! the log-probability.
//!
//! ### Example
//! Under `objective="cispo"`:
//! ```diff
//! -        losses = -advantages * clipped * log_probs
//! +        losses = -advantages * clipped.detach() * log_probs
//! ```

use super::gradient;
use crate::policy_loss::{Advantages, PolicyLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::LogSpaceSign,
    &["objective-sign-flipped", "ratio-inverted", "weight-keeps-its-gradient"],
    check,
)
.under(|options| options.beta == 0.0)
.needs_gradient();

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    if !case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let returned = probe.gradient_output()?;
    let slopes = gradient(&returned.output, case)?;
    let expected = PolicyLoss::oracle_gradient(case, options, probe.place.dtype);
    let bounds = probe.bounds_in(&expected, "grad_log_probs");
    let advantages = Advantages::of(case);
    // A ratio that all tokens of a row share passes on the row's advantage, which is one.
    for (at, kept) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        let (slope, advantage) = (slopes[at], advantages.at(at.0, at.1));
        let sign = if advantage == 0.0 { 0.0 } else { advantage.signum() };
        let wrong = if sign == 0.0 { slope.abs() } else { slope * sign };
        assert!(*kept);
        if wrong > bounds[[at.0, at.1]] {
            broken!(
                "grad_log_probs[{}, {}] is {} at an advantage of {advantage}",
                at.0,
                at.1,
                rounded(slope)
            );
        }
    }
    Ok(())
}
