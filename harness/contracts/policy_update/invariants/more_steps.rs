//! More steps go further.
//!
//! ### Claim
//! In nearly every run the policy is further from its start after all steps than after one.
//!
//! ### Why it matters
//! A loop that ends after its first round, or an update that is undone by the next, looks like slow
//! learning and is blamed on the learning rate.
//!
//! ### Does not hold for
//! Cases without a clear signal.
//!
//! ### Bugs it has caught
//! Step counts that never reach the loop; policies reloaded before each step.
//!
//! ### Example
//! ```diff
//!              policy -= learning_rate * gradient
//! -        return policy.detach(), reference.detach()
//! +    return policy.detach(), reference.detach()
//! ```

use ndarray::arr0;

use crate::policy_update::{PolicyUpdate, PolicyUpdateCase, divergence, generate, trials};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> =
    Rule::new(Pitfall::Configuration, &["steps-ignored"], check);

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    let case = probe.case;
    generate::signal(case, probe.options).ok_or(Stop::Vacuous)?;
    let share = probe.options.tolerance;
    let count = trials::too_many(share, || {
        let seed = trials::seed(probe);
        let many = case.seeded(seed);
        let one = PolicyUpdateCase { steps: arr0(1), ..many.clone() };
        let [many, one] = [trials::run(probe, &many)?, trials::run(probe, &one)?]
            .map(|output| divergence(&output.logits, &case.logits));
        Ok((many <= one, many - one))
    })?;
    if let Some(count) = count {
        broken!(
            "after {} steps the policy is {} nats further from its start than after one, on \
             average; it was no further in {} of {} runs, expected at most a share of {share}",
            case.steps,
            rounded(count.mean),
            count.failed,
            count.of,
        );
    }
    Ok(())
}
