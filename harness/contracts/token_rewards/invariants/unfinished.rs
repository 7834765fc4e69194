//! A completion that did not come to its end is dealt with as declared, and no other is.
//!
//! ### Claim
//! Where a row is called unfinished, its score alone becomes what `unfinished` says.
//!
//! ### Why it matters
//! Whether p is taken off, stands in place of the score or multiplies it differs between trainers
//! of one library. The policy learns to stop, or that stopping does not matter.
//!
//! ### Does not hold for
//! `unfinished: none`; rows without a token; masked columns where anything may stand there.
//!
//! ### Bugs it has caught
//! trl #3750, #2012 and #2033: -p for r - p, and no penalty at all.
//!
//! ### Example
//! Under `unfinished="subtract"`:
//! ```diff
//!      if unfinished == "subtract":
//! -        scores = torch.where(finished, scores, -penalty)
//! +        scores = torch.where(finished, scores, scores - penalty)
//! ```

use super::{rounding, scored};
use crate::token_rewards::{TokenRewards, TokenRewardsCase, Unfinished, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenRewards> = Rule::new(
    Pitfall::Configuration,
    &[
        "replaced-where-subtracted",
        "subtracted-where-replaced",
        "replaced-by-plus-p",
        "subtracted-where-scaled",
        "unfinished-ignored",
        "finished-inverted",
        "one-unfinished-row-is-enough",
        "penalised-after-the-clip",
    ],
    check,
)
.under(|options| options.unfinished != Unfinished::None);

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let (row, place) = *probe.pick.one(&scored(case, options)?);
    let mut other: TokenRewardsCase = case.clone();
    let Some(finished) = &mut other.finished else { return Err(Stop::Vacuous) };
    finished[row] = !finished[row];
    let now = if finished[row] { "finished" } else { "unfinished" };
    let before = probe.finite_output()?;
    let after = probe.call(&other)?;
    let score = |case| oracle::shaped(case, options, row);
    let (old, new) = (score(case), score(&other));
    let mut expected = before.output.rewards.clone();
    expected[[row, place]] += new.value - old.value;
    let mut allowed = 2.0 * rounding(probe);
    // The other score may be made of larger terms.
    allowed[[row, place]] += probe.tolerance.bound(new.into(), 1);
    close(format_args!("with row {row} {now}, rewards"), &after.rewards, &expected, &allowed)
}
