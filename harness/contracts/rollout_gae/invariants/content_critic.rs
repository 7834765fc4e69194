//! A critic that is right leaves nothing to be surprised about.
//!
//! ### Claim
//! Where every value is v, and every reward (1 − γ)·v, or v at an end, every advantage is 0.
//!
//! ### Why it matters
//! Such a critic is right about every state, so every TD error is 0, whatever λ is and wherever
//! episodes end. A value from the wrong state, or a cut at the wrong step, shows at once.
//!
//! ### Does not hold for
//! Nothing; what storing (1 − γ)·v rounds away is allowed for.
//!
//! ### Bugs it has caught
//! SB3 #105: an end read one step late gives two TD errors of the size of the value.
//!
//! ### Example
//! ```diff
//! -        delta = (rewards[step] + gamma * next_values) * goes_on - values[step]
//! +        delta = rewards[step] + gamma * next_values * goes_on - values[step]
//! ```

use crate::rollout_gae::{Options, RolloutGae};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RolloutGae> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["done-flag-shifted", "cut-taken-for-an-end", "last-reward-dropped", "dones-ignored"],
    check,
);

fn check(probe: &mut Probe<'_, RolloutGae>) -> Outcome {
    let Options { gamma, lam, .. } = *probe.options;
    let ends = probe.case.ends(probe.options);
    let value = *probe.pick.one(&[1.0, 4.0, -2.0]);
    let mut content = probe.case.clone();
    content.values.fill(value);
    content.last_values.fill(value);
    let stored = probe.place.dtype.round((1.0 - gamma) * value);
    for (reward, end) in content.rewards.iter_mut().zip(&ends) {
        *reward = if *end { value } else { stored };
    }
    let found = probe.call(&content)?.advantages;
    let bounds = probe.bounds_in(&probe.expected_of(&content), "advantages");
    // What storing the reward rounds away adds up over the steps.
    let lost = probe.place.dtype.unit_roundoff() * stored.abs();
    for ((step, env), advantage) in found.indexed_iter() {
        let ahead = (found.nrows() - step - 1) as i32;
        let steps: f64 = (0..=ahead).map(|ahead| (gamma * lam).powi(ahead)).sum();
        let allowed = bounds[[step, env]] + lost * steps;
        let what = format_args!(
            "with all values {value} and the rewards that keep them, advantages[{step}, {env}]"
        );
        near(what, *advantage, 0.0, allowed)?;
    }
    Ok(())
}
