//! The best arm gains on every other.
//!
//! ### Claim
//! In nearly every run the one best arm gains on each of the others.
//!
//! ### Why it matters
//! The expected reward can rise although an arm is favoured that does not deserve it, as long as
//! others fall. Here every pair is looked at.
//!
//! ### Does not hold for
//! Cases without a clear signal, and those with several best arms: between those, chance decides.
//!
//! ### Bugs it has caught
//! Bonuses for the first index, samplers that never draw the last one.
//!
//! ### Example
//! ```diff
//! -        advantages = rewards[arms - 1] - rewards[arms - 1].mean()
//! +        advantages = rewards[arms] - rewards[arms].mean()
//! ```

use crate::policy_update::{PolicyUpdate, generate, trials};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["sign-flipped", "advantage-of-another-arm", "last-arm-never-sampled", "first-arm-privileged"],
    check,
);

/// How much a logit must gain on another one at least.
const LEAST: f64 = 0.01;

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    let case = probe.case;
    let signal = generate::signal(case, probe.options).ok_or(Stop::Vacuous)?;
    let [best] = signal.best[..] else { return Err(Stop::Vacuous) };
    let share = probe.options.tolerance;
    let count = trials::too_many(share, || {
        let seed = trials::seed(probe);
        let output = trials::run(probe, &case.seeded(seed))?;
        let gain = |arm: usize| output.logits[arm] - case.logits[arm];
        let others = (0..case.logits.len()).filter(|arm| *arm != best);
        let least = others.map(|arm| gain(best) - gain(arm)).fold(f64::INFINITY, f64::min);
        Ok((least <= LEAST, least))
    })?;
    if let Some(count) = count {
        broken!(
            "the logit of arm {best}, the best one, gains {} on that of the arm that gains most \
             of the others, on average; it gained nothing in {} of {} runs, expected at most a \
             share of {share}",
            rounded(count.mean),
            count.failed,
            count.of,
        );
    }
    Ok(())
}
