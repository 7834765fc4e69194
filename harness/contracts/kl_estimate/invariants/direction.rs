//! The estimate is one of KL(π‖ref), not of KL(ref‖π).
//!
//! ### Claim
//! With policy and reference exchanged, a token with d > 0 has a smaller k1 and a larger k3.
//!
//! ### Why it matters
//! Nothing else shows the direction: the reversed estimate is 0 at the start, never negative, and
//! grows. But it is dominated by tokens that the reference would never have sampled, and on
//! average it is no KL at all.
//!
//! ### Does not hold for
//! k2 and abs, which are the same in both directions; equal values are within every clamp.
//!
//! ### Bugs it has caught
//! trlx: e^d - 1 - d on samples of the policy.
//!
//! ### Example
//! ```diff
//! -        kl = torch.expm1(gap) - gap
//! +        kl = torch.expm1(-gap) + gap
//! ```

use crate::kl_estimate::{Estimator, KlEstimate, KlEstimateCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> =
    Rule::new(Pitfall::LogSpaceSign, &["k3-direction-reversed", "k1-direction-reversed"], check)
        .under(|options| matches!(options.estimator, Estimator::K1 | Estimator::K3));

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let KlEstimateCase { log_probs, ref_log_probs } = probe.case.clone();
    if log_probs == ref_log_probs {
        return Err(Stop::Vacuous);
    }
    let exchanged = KlEstimateCase { log_probs: ref_log_probs, ref_log_probs: log_probs };
    let before = probe.output()?;
    let after = probe.call(&exchanged)?;
    let allowed = probe.bounds("kl") + probe.bounds_in(&probe.expected_of(&exchanged), "kl");
    let falls = if probe.options.estimator == Estimator::K1 { 1.0 } else { -1.0 };
    for ((row, column), found) in before.output.kl.indexed_iter() {
        let at = [row, column];
        let sign = (probe.case.log_probs[at] - probe.case.ref_log_probs[at]).signum();
        let (other, allowed) = (after.kl[at], allowed[at]);
        if falls * sign * (other - found) > allowed {
            let [found, other] = pair(*found, other);
            broken!(
                "kl[{row}, {column}] is {found}, and {other} with policy and reference exchanged: \
                 the other way round for KL(policy ‖ reference)"
            );
        }
    }
    Ok(())
}
