//! The score is added as it is.
//!
//! ### Claim
//! A row with a larger score gets as much more in one column, and the same in all others.
//!
//! ### Why it matters
//! A score that is scaled, centred or divided on its way leaves rewards that look right, at another
//! rate of exchange with the penalty.
//!
//! ### Does not hold for
//! `score_clip`; rows with `finished` false, whose score becomes something else; masked columns
//! where anything may stand there.
//!
//! ### Bugs it has caught
//! β multiplied into the score; scores divided among the tokens of a row; LLaMA-Factory #7576:
//! scores of other rows.
//!
//! ### Example
//! ```diff
//! -    rewards = beta * (ends * scores[:, None] - kl)
//! +    rewards = ends * scores[:, None] - beta * kl
//! ```

use super::{rounding, scored};
use crate::token_rewards::{TokenRewards, TokenRewardsCase, is_finished};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenRewards> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "score-scaled-too",
        "score-of-another-row",
        "scores-centred",
        "score-at-every-token",
        "score-spread",
        "score-clipped-although-not-declared",
    ],
    check,
)
.under(|options| options.score_clip.is_none());

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let mut rows = scored(probe.case, probe.options)?;
    rows.retain(|(row, _)| is_finished(probe.case.finished.as_ref(), *row));
    if rows.is_empty() {
        return Err(Stop::Vacuous);
    }
    let (row, place) = *probe.pick.one(&rows);
    let more = *probe.pick.one(&[1.0, -2.0, 4.0, 16.0]);
    let before = probe.output()?;
    let mut changed: TokenRewardsCase = probe.case.clone();
    changed.scores[row] = probe.place.dtype.round(changed.scores[row] + more);
    let more = changed.scores[row] - probe.case.scores[row];
    let after = probe.call(&changed)?;
    let mut expected = before.output.rewards.clone();
    expected[[row, place]] += more;
    // What is added is as large as the numbers it is added to.
    let mut allowed = 2.0 * rounding(probe);
    allowed[[row, place]] += probe.tolerance.bound(Number::new(more, more.abs()), 1);
    close(
        format_args!("with {} more for row {row}, rewards", number(more)),
        &after.rewards,
        &expected,
        &allowed,
    )
}
