//! Training raises the expected reward.
//!
//! ### Claim
//! In nearly every run the expected reward rises.
//!
//! ### Why it matters
//! It is what all the rest is for. A wrong sign anywhere in the chain, samples that are scored with
//! the rewards of others, an optimizer that updates a copy: each part can look right by itself.
//!
//! ### Does not hold for
//! Cases without a clear signal: equal rewards, better arms that are hardly ever sampled, very few
//! or very large steps, `beta` above half the difference of the rewards. A learner may fail in the
//! share of runs that `tolerance` declares.
//!
//! ### Bugs it has caught
//! LLaMA-Factory #7576: scores of other rows. Greedy decoding in rollouts, which never tries what
//! is better.
//!
//! ### Example
//! ```diff
//! -        arms = probs.argmax().repeat(16)
//! +        arms = torch.multinomial(probs, 16, replacement=True, generator=generator)
//! ```

use crate::policy_update::{PolicyUpdate, expected_reward, generate, trials};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "sign-flipped",
        "reward-ignored",
        "advantage-of-another-arm",
        "magnitude-of-the-advantage",
        "update-of-a-copy",
        "most-likely-arm-sampled",
        "last-arm-never-sampled",
    ],
    check,
);

/// The share of the difference of the rewards by which the expected reward rises at least.
const LEAST: f64 = 0.01;

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    let case = probe.case;
    let signal = generate::signal(case, probe.options).ok_or(Stop::Vacuous)?;
    let before = expected_reward(&case.logits, &case.rewards);
    let share = probe.options.tolerance;
    let count = trials::too_many(share, || {
        let seed = trials::seed(probe);
        let output = trials::run(probe, &case.seeded(seed))?;
        let after = expected_reward(&output.logits, &case.rewards);
        Ok((after - before <= LEAST * signal.gap, after))
    })?;
    if let Some(count) = count {
        broken!(
            "the expected reward is {} before and {} after, on average; it did not rise in {} of \
             {} runs, expected at most a share of {share}",
            rounded(before),
            rounded(count.mean),
            count.failed,
            count.of,
        );
    }
    Ok(())
}
