//! The reference does not move.
//!
//! ### Claim
//! The reference after training is the policy before it.
//!
//! ### Why it matters
//! The KL to a reference that moves along is always small. It holds nothing back, and nothing in
//! the logs shows that.
//!
//! ### Does not hold for
//! Components that return no `ref_logits`.
//!
//! ### Bugs it has caught
//! trl #6443: reference values computed again with the trained weights.
//!
//! ### Example
//! ```diff
//! -    reference = policy
//! +    reference = logits.clone()
//! ```

use crate::policy_update::PolicyUpdate;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> = Rule::new(
    Pitfall::ReferenceDrift,
    &[
        "reference-recomputed-from-the-policy",
        "reference-shared-with-the-policy",
        "another-reference",
    ],
    check,
);

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    let returned = probe.output()?;
    let Some(reference) = &returned.output.ref_logits else { return Err(Stop::Vacuous) };
    if reference.len() != probe.case.logits.len() {
        broken!("ref_logits has {} arms, expected {}", reference.len(), probe.case.logits.len());
    }
    for (arm, (found, expected)) in reference.iter().zip(&probe.case.logits).enumerate() {
        let allowed = probe.tolerance.bound(Number::new(*expected, expected.abs()), 1);
        if apart(*found, *expected, allowed) {
            let [found, expected] = pair(*found, *expected);
            broken!("ref_logits[{arm}] is {found} after training, expected {expected} as before");
        }
    }
    Ok(())
}
