//! The score stands in one column of its row.
//!
//! ### Claim
//! Where nothing is to be paid, a row's score is its only reward that is not 0.
//!
//! ### Why it matters
//! Returns carry a score backwards from the token that ended the completion. One that stands on a
//! pad is lost with it, one that stands at every token is worth T times as much.
//!
//! ### Does not hold for
//! Rows whose policies differ somewhere while β is above 0; masked columns where anything may stand
//! there.
//!
//! ### Bugs it has caught
//! Scores in the last column of right-padded rows; scores at the number of tokens less one in
//! left-padded ones; trl #3750, where it stands one column later.
//!
//! ### Example
//! ```diff
//! -    last = mask.sum(dim=1, keepdim=True) - 1
//! +    last = (steps * mask).argmax(dim=1, keepdim=True)
//! ```

use super::{rounding, scored};
use crate::token_rewards::{TokenRewards, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenRewards> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "score-in-the-last-column",
        "score-by-the-length",
        "score-before-the-gap",
        "score-at-the-first-token",
        "score-one-late",
        "score-one-early",
        "full-row-loses-its-score",
        "score-at-every-token",
        "score-spread",
        "one-is-missing",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let free = |row: usize| {
        let pays = |token: &usize| {
            case.mask[[row, *token]]
                && case.log_probs[[row, *token]] != case.ref_log_probs[[row, *token]]
        };
        options.beta == 0.0 || !(0..case.mask.ncols()).any(|token| pays(&token))
    };
    let mut rows = scored(case, options)?;
    rows.retain(|(row, _)| free(*row));
    if rows.is_empty() {
        return Err(Stop::Vacuous);
    }
    let returned = probe.output()?;
    let bounds = rounding(probe);
    for (row, place) in rows {
        let score = oracle::shaped(case, options, row).value;
        for token in 0..case.mask.ncols() {
            let expected = if token == place { score } else { 0.0 };
            let found = returned.output.rewards[[row, token]];
            if apart(found, expected, bounds[[row, token]]) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "rewards[{row}, {token}] is {found}, expected {expected}: row {row} has \
                     nothing to pay, and its score stands in column {place}"
                );
            }
        }
    }
    Ok(())
}
