//! A token pays for itself alone.
//!
//! ### Claim
//! Another log-probability of one token changes the reward of that token and of no other.
//!
//! ### Why it matters
//! The penalty tells the policy where it left the reference. One that is averaged over the row,
//! added up along it or taken from a neighbour tells it something else, in the same total.
//!
//! ### Does not hold for
//! Masked columns where anything may stand there.
//!
//! ### Bugs it has caught
//! trl #2058: the reference is that of a neighbour. A penalty of the whole row at its end.
//!
//! ### Example
//! ```diff
//! -    rewards = ends * (scores - beta * kl.sum(dim=1))[:, None]
//! +    rewards = ends * scores[:, None] - beta * kl
//! ```

use super::rounding;
use crate::token_rewards::{TokenRewards, TokenRewardsCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenRewards> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "mean-of-the-row",
        "all-at-the-end",
        "penalty-added-up",
        "reference-off-by-one",
        "rows-in-another-order",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let kept = probe.case.mask.indexed_iter().filter(|(_, kept)| **kept).map(|(at, _)| at);
    let tokens: Vec<(usize, usize)> = kept.collect();
    if tokens.is_empty() || probe.case.mask.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let token = *probe.pick.one(&tokens);
    let field = probe.pick.below(2);
    let before = probe.output()?;
    let mut changed: TokenRewardsCase = probe.case.clone();
    let gap = changed.log_probs[token] - changed.ref_log_probs[token];
    // Towards each other, so that no bound is left.
    let step = if gap > 0.0 { -1.0 } else { 1.0 };
    let dtype = probe.place.dtype;
    let (moved, by) = match field {
        0 => (&mut changed.log_probs[token], step),
        _ => (&mut changed.ref_log_probs[token], -step),
    };
    *moved = dtype.round(*moved + by);
    let after = probe.call(&changed)?;
    let bounds = 2.0 * rounding(probe);
    let allowed = only(bounds.into_dyn(), |[row, column]: [usize; 2]| (row, column) != token);
    let (row, column) = token;
    unchanged(
        format_args!("with another log-probability at [{row}, {column}], rewards"),
        &after.rewards,
        &before.output.rewards,
        &allowed,
    )
}
