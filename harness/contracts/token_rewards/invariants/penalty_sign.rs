//! Distance from the reference costs.
//!
//! ### Claim
//! A token that is likelier than to the reference gets less when the reference likes it less yet.
//!
//! ### Why it matters
//! With the other sign the policy is paid for leaving the reference, and the run collapses within
//! a few steps while its rewards rise.
//!
//! ### Does not hold for
//! β = 0; clamps, beyond which nothing more is to pay; rows whose score is clipped with them.
//!
//! ### Bugs it has caught
//! trl #168: the policies the wrong way round. A sign lost between a cost and a reward.
//!
//! ### Example
//! ```diff
//! -    kl = torch.where(mask, ref_log_probs - log_probs, 0.0)
//! +    kl = torch.where(mask, log_probs - ref_log_probs, 0.0)
//! ```

use super::rounding;
use crate::token_rewards::{TokenRewards, TokenRewardsCase, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenRewards> = Rule::new(
    Pitfall::LogSpaceSign,
    &["penalty-added", "direction-reversed", "kl-left-out"],
    check,
)
.under(|options| {
    options.beta > 0.0 && options.kl_clamp.is_none() && options.log_ratio_clamp.is_none()
});

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let (case, options, dtype) = (probe.case, probe.options, probe.place.dtype);
    let likelier = |at: (usize, usize)| case.log_probs[at] > case.ref_log_probs[at];
    let tokens = case.mask.indexed_iter().filter(|(at, kept)| **kept && likelier(*at));
    let tokens: Vec<(usize, usize)> = tokens.map(|(at, _)| at).collect();
    if tokens.is_empty() {
        return Err(Stop::Vacuous);
    }
    let at = *probe.pick.one(&tokens);
    let mut further: TokenRewardsCase = case.clone();
    // Far enough that the difference shows in half precision too.
    further.ref_log_probs[at] = dtype.round(further.ref_log_probs[at] - 8.0);
    let cost = |case: &TokenRewardsCase| {
        let kl = oracle::divergence(case.log_probs[at], case.ref_log_probs[at], options, dtype);
        options.beta * kl.value
    };
    let before = probe.output()?;
    let after = probe.call(&further)?;
    let (found, limit) = (after.rewards[at], before.output.rewards[at]);
    // Less than rounding says nothing.
    if cost(&further) - cost(case) <= 4.0 * rounding(probe)[at] {
        return Err(Stop::Vacuous);
    }
    if found.is_nan() || found >= limit {
        let (row, token) = at;
        broken!(
            "rewards[{row}, {token}] is {} further from the reference, expected less than {}",
            rounded(found),
            rounded(limit)
        );
    }
    Ok(())
}
