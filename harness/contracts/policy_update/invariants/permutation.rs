//! The names of the arms do not matter.
//!
//! ### Claim
//! With the arms in another order the policies that come out have the same distribution.
//!
//! ### Why it matters
//! An arm is a token, and a token's number says nothing of its worth. Where the order counts, an
//! index is off by one, a sampler never draws the last entry, or one entry gets something extra.
//!
//! ### Does not hold for
//! Cases without a clear signal: there chance is too large to tell two distributions apart in a
//! few runs. Only the probability of the best arms is compared.
//!
//! ### Bugs it has caught
//! Samplers and scores that are off by one along the vocabulary.
//!
//! ### Example
//! ```diff
//! -        arms = torch.multinomial(probs[:-1], 16, replacement=True, generator=generator)
//! +        arms = torch.multinomial(probs, 16, replacement=True, generator=generator)
//! ```

use ndarray::Axis;

use crate::policy_update::{PolicyUpdate, PolicyUpdateCase, generate, softmax, trials};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> =
    Rule::new(Pitfall::Sampling, &["last-arm-never-sampled", "first-arm-privileged"], check);

/// Probabilities nearer to each other than this are the same.
const NEAR: f64 = 0.02;

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    let case = probe.case;
    let signal = generate::signal(case, probe.options).ok_or(Stop::Vacuous)?;
    let order = probe.pick.shuffled(case.logits.len());
    let permuted = PolicyUpdateCase {
        logits: case.logits.select(Axis(0), &order),
        rewards: case.rewards.select(Axis(0), &order),
        ..case.clone()
    };
    let best = |arm: usize| signal.best.contains(&arm);
    let found = trials::apart(NEAR, |kind| {
        let seed = trials::seed(probe);
        let case = if kind == 0 { case } else { &permuted };
        let output = trials::run(probe, &case.seeded(seed))?;
        let policy = softmax(&output.logits.to_vec());
        let of_best = policy.iter().enumerate().filter(|(place, _)| match kind {
            0 => best(*place),
            _ => best(order[*place]),
        });
        Ok(of_best.map(|(_, p)| p).sum())
    })?;
    if let Some([before, after]) = found {
        let [after, before] = pair(after, before);
        broken!(
            "the best arms have the probability {before} after training, and {after} with the arms \
             in the order {order:?} (on average; this is no chance)"
        );
    }
    Ok(())
}
