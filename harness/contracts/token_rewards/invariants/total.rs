//! A row adds up to its score less what its tokens pay.
//!
//! ### Claim
//! The rewards of a row sum to its score less β times its tokens' divergences.
//!
//! ### Why it matters
//! Without a discount the return of the first token is this sum. Whatever is lost, paid twice or
//! taken from another row shows in it, wherever in the row that happened.
//!
//! ### Does not hold for
//! Masked columns where anything may stand there: they are left out of the sum.
//!
//! ### Bugs it has caught
//! ms-swift #9921: rows of a later rank pay for rows of the first. slime f6f46cb17: nobody pays.
//!
//! ### Example
//! ```diff
//! -    rewards = torch.where(ends, scores[:, None], -beta * kl)
//! +    rewards = ends * scores[:, None] - beta * kl
//! ```

use super::{rounding, scored};
use crate::token_rewards::{TokenRewards, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenRewards> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "kl-left-out",
        "kl-of-another-row",
        "beta-left-out",
        "beta-twice",
        "penalty-added",
        "penalty-added-up",
        "end-does-not-pay",
        "first-token-does-not-pay",
        "direction-reversed",
        "negative-estimates-dropped",
        "kl-clamp-ignored",
        "kl-clamped-above-only",
        "log-ratio-clamp-on-the-result",
        "tokens-after-a-gap-do-not-pay",
        "reward-clipped-with-its-penalty",
        "score-clip-ignored",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let rows = scored(case, options)?;
    let returned = probe.finite_output()?;
    let divergences = oracle::divergences(case, options, probe.place.dtype);
    let bounds = rounding(probe);
    for (row, place) in rows {
        let score = oracle::shaped(case, options, row).value;
        let (mut found, mut paid, mut allowed) = (0.0, 0.0, 0.0);
        for token in 0..case.mask.ncols() {
            if case.mask[[row, token]] || token == place {
                found += returned.output.rewards[[row, token]];
                allowed += bounds[[row, token]];
            }
            paid += divergences[[row, token]].map_or(0.0, |kl| options.beta * kl.value);
        }
        let expected = score - paid;
        if apart(found, expected, allowed) {
            let [found, expected] = pair(found, expected);
            broken!(
                "the rewards of row {row} sum to {found}, but its score is {} and it pays {}: \
                 expected {expected} ± {allowed:.1e}",
                rounded(score),
                rounded(paid)
            );
        }
    }
    Ok(())
}
