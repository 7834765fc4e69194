//! Where all arms have the same reward there is nothing to learn.
//!
//! ### Claim
//! With one reward for all arms the policy goes to no side systematically.
//!
//! ### Why it matters
//! A prompt that is too easy or too hard gives every completion the same reward. What moves the
//! policy then is no signal: the likely becomes likelier, entropy collapses, or a term that nobody
//! declared takes over.
//!
//! ### Does not hold for
//! Single runs: without a baseline they walk at random. Only what more than three quarters of all
//! runs do counts. `beta` above 0: at the reference the gradient of the KL is rounding, which Adam
//! turns into whole steps.
//!
//! ### Bugs it has caught
//! Entropy bonuses and weight decay left at their defaults, gradients that miss the normaliser.
//!
//! ### Example
//! ```diff
//! -        loss = -(advantages * log_probs[arms]).mean() + 0.01 * (probs * log_probs).sum()
//! +        loss = -(advantages * log_probs[arms]).mean()
//! ```

use crate::policy_update::{PolicyUpdate, generate, softmax, trials};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "entropy-bonus-undeclared",
        "logits-decay",
        "gradient-detached-from-the-normaliser",
        "first-arm-privileged",
    ],
    check,
)
.under(|options| options.beta == 0.0);

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    let case = probe.case;
    if !generate::is_constant(case) {
        return Err(Stop::Vacuous);
    }
    // The first of the most likely arms.
    let policy = softmax(&case.logits.to_vec());
    let arms = (0..policy.len()).rev();
    let arm = arms.max_by(|a, b| policy[*a].total_cmp(&policy[*b])).unwrap_or(0);
    let log_odds = |policy: &[f64]| (policy[arm] / (1.0 - policy[arm]).max(1e-300)).ln();
    let before = log_odds(&policy);
    let found = trials::one_sided(|| {
        let seed = trials::seed(probe);
        let output = trials::run(probe, &case.seeded(seed))?;
        Ok(log_odds(&softmax(&output.logits.to_vec())) - before)
    })?;
    if let Some((above, count)) = found {
        broken!(
            "every arm has the same reward, but arm {arm} becomes {} likely in {} of {} runs: its \
             log-odds move by {} on average",
            if above { "more" } else { "less" },
            count.failed,
            count.of,
            rounded(count.mean),
        );
    }
    Ok(())
}
