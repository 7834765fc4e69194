//! The loss falls when good tokens become more likely.
//!
//! ### Claim
//! Raising an unclipped token's log-probability lowers the loss if A > 0, and raises it if A < 0.
//!
//! ### Why it matters
//! It is what a policy loss is for. A sign turned on the way, of the ratio, the advantage or the
//! whole, makes training unlearn.
//!
//! ### Does not hold for
//! `beta` > 0, where the reference pulls too; `cispo`, of which only the gradient has a meaning;
//! shared ratios.
//!
//! ### Bugs it has caught
//! Ratios of the old policy to the new one; the minimum of the paper kept in a loss.
//!
//! ### Example
//! ```diff
//! -    log_ratio = old_log_probs - log_probs
//! +    log_ratio = log_probs - old_log_probs
//! ```

use super::loss_bound;
use crate::policy_loss::{Advantages, Objective, PolicyLoss, Ratio};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::LogSpaceSign,
    &["objective-sign-flipped", "ratio-inverted", "advantages-without-their-sign"],
    check,
)
.under(|options| {
    options.beta == 0.0
        && (options.objective == Objective::Reinforce
            || options.objective == Objective::PpoClip && options.ratio == Ratio::Token)
});

/// How much a log-probability is raised; exact in every format.
const STEP: f64 = 0.125;

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let advantages = Advantages::of(case);
    let (lo, hi) = options.bounds();
    let limit = options.log_ratio_clamp.unwrap_or(f64::INFINITY);
    let stays = |at: (usize, usize)| {
        let inside = |x: f64| {
            let ratio = x.exp();
            let up = advantages.at(at.0, at.1) > 0.0;
            let dual = options.dual().unwrap_or(f64::INFINITY);
            x.abs() < limit && if up { ratio < hi } else { ratio > lo && ratio < dual }
        };
        let x = case.log_probs[at] - case.old_log_probs[at];
        options.objective == Objective::Reinforce || (inside(x) && inside(x + STEP))
    };
    let tokens: Vec<(usize, usize)> = case
        .mask
        .indexed_iter()
        .filter(|((row, token), kept)| **kept && advantages.at(*row, *token) != 0.0)
        .map(|(at, _)| at)
        .filter(|at| case.log_probs[*at] <= -STEP && stays(*at))
        .collect();
    if tokens.is_empty() {
        return Err(Stop::Vacuous);
    }
    let at = *probe.pick.one(&tokens);
    let before = probe.output()?;
    let mut raised = case.clone();
    raised.log_probs[at] += STEP;
    let after = probe.call(&raised)?;
    let [expected, expected_after] = [probe.expected().to_vec(), probe.expected_of(&raised)];
    let allowed = loss_bound(probe, &expected) + loss_bound(probe, &expected_after);
    let (from, to) = (before.output.loss[()], after.loss[()]);
    let advantage = advantages.at(at.0, at.1);
    // Not broken by a change that is lost in rounding.
    if (to - from) * advantage.signum() > allowed {
        broken!(
            "with log_probs[{}, {}] raised by {STEP} at an advantage of {advantage}, loss goes \
             from {} to {}, expected it to {}",
            at.0,
            at.1,
            rounded(from),
            rounded(to),
            if advantage > 0.0 { "fall" } else { "rise" }
        );
    }
    Ok(())
}
