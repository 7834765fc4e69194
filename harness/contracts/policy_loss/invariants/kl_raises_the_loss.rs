//! A distance to the reference costs something.
//!
//! ### Claim
//! The loss is at least what it is where the reference is the policy itself.
//!
//! ### Why it matters
//! The KL term holds the policy near the reference. With its sign turned, drift is rewarded, and
//! the run diverges while its reward goes up.
//!
//! ### Does not hold for
//! `beta` = 0, and `k1`, which is negative where the policy is the less likely one.
//!
//! ### Bugs it has caught
//! verl #179, Search-R1 4b3c094: the term was subtracted.
//!
//! ### Example
//! Under `beta=0.1`:
//! ```diff
//! -        losses = losses - beta * kl
//! +        losses = losses + beta * kl
//! ```

use super::{at_the_reference, loss_bound};
use crate::policy_loss::PolicyLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> =
    Rule::new(Pitfall::LogSpaceSign, &["kl-term-subtracted"], check)
        .under(|options| options.beta > 0.0 && options.kl_has_a_minimum());

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let away = probe.finite_output()?;
    let near = at_the_reference(probe.case);
    let at_home = probe.call(&near)?;
    let [expected, expected_near] = [probe.expected().to_vec(), probe.expected_of(&near)];
    let allowed = loss_bound(probe, &expected) + loss_bound(probe, &expected_near);
    let (away, at_home) = (away.output.loss[()], at_home.loss[()]);
    if away < at_home - allowed {
        broken!(
            "loss is {}, but {} where the reference is the policy itself",
            rounded(away),
            rounded(at_home)
        );
    }
    Ok(())
}
