//! A larger `beta` keeps the policy closer to where it began.
//!
//! ### Claim
//! In nearly every run a large `beta` ends closer to the start than a `beta` of 0.
//!
//! ### Why it matters
//! The KL is all that keeps a policy from exploiting its reward model. A term with the wrong sign,
//! with a reference that moves along, or that never reaches the loss is missed only when the
//! policy has gone where it should not.
//!
//! ### Does not hold for
//! `beta: 0`, components that do not take `beta` by name, and cases in which even a `beta` of 0
//! does not go far.
//!
//! ### Bugs it has caught
//! Options without effect; references that share their weights with the policy.
//!
//! ### Example
//! Under `beta=0.5`:
//! ```diff
//! -            loss = loss - beta * kl
//! +            loss = loss + beta * kl
//! ```

use crate::policy_update::{Options, PolicyUpdate, divergence, generate, trials};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> = Rule::new(
    Pitfall::ReferenceDrift,
    &["beta-ignored", "kl-sign-flipped", "reference-shared-with-the-policy"],
    check,
)
.under(|options| options.beta > 0.0);

/// The large `beta`, in units of the difference of the rewards.
const LARGE: f64 = 4.0;

/// How far the steps must be able to go.
const REACH: f64 = 7.9;

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    let case = probe.case;
    let signal = generate::signal(case, probe.options).ok_or(Stop::Vacuous)?;
    if signal.reach < REACH || !probe.reads("beta") {
        return Err(Stop::Vacuous);
    }
    let large = LARGE * signal.gap;
    let [free, held] = [0.0, large].map(|beta| Options { beta, ..probe.options.clone() });
    let share = probe.options.tolerance;
    let count = trials::too_many(share, || {
        let seed = trials::seed(probe);
        let case = case.seeded(seed);
        let mut away = |options: &Options| {
            let output = probe.call_under(&case, options)?;
            let finite = output.logits.iter().all(|z| z.is_finite());
            if finite { Ok(divergence(&output.logits, &case.logits)) } else { Err(Stop::Vacuous) }
        };
        let [free, held] = [away(&free)?, away(&held)?];
        Ok((held >= free, held - free))
    })?;
    if let Some(count) = count {
        broken!(
            "with `beta` {large} the policy ends {} nats further from its start than with 0, on \
             average; it was no closer in {} of {} runs, expected at most a share of {share}",
            rounded(count.mean),
            count.failed,
            count.of,
        );
    }
    Ok(())
}
