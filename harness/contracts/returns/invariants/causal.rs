//! What came before a token has no part in its return.
//!
//! ### Claim
//! Changing a reward changes no return after it.
//!
//! ### Why it matters
//! A token is credited with what it led to. A sum from the start, or a row turned around, credits
//! it with what was there before it was chosen.
//!
//! ### Does not hold for
//! Rows of one token.
//!
//! ### Bugs it has caught
//! Sums taken from the start of the row; returns of one row carried into the next.
//!
//! ### Example
//! ```diff
//! -    for t in range(rewards.shape[1]):
//! +    for t in reversed(range(rewards.shape[1])):
//! ```

use crate::returns::Returns;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Returns> =
    Rule::new(Pitfall::AdvantageNormalisation, &["summed-from-the-start"], check);

fn check(probe: &mut Probe<'_, Returns>) -> Outcome {
    let (rows, tokens) = probe.case.rewards.dim();
    let kept = |row: usize, token: usize| probe.case.mask[[row, token]];
    let places: Vec<(usize, usize)> = (0..rows)
        .flat_map(|row| (0..tokens).map(move |token| (row, token)))
        .filter(|(row, token)| kept(*row, *token) && (token + 1..tokens).any(|t| kept(*row, t)))
        .collect();
    if places.is_empty() {
        return Err(Stop::Vacuous);
    }
    let (row, token) = *probe.pick.one(&places);
    let before = probe.output()?;
    let mut changed = probe.case.clone();
    changed.rewards[[row, token]] = *probe.pick.one(&[5.0, -3.0, 64.0]);
    let after = probe.call(&changed)?;
    let bounds = probe.related("returns");
    let later = |[r, t]: [usize; 2]| r == row && t > token && kept(r, t);
    unchanged(
        format_args!("with another reward at token {token} of row {row}, returns"),
        &after.returns,
        &before.output.returns,
        &only(2.0 * bounds, later),
    )
}
