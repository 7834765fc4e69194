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

use super::super::Returns;
use crate::contract::invariant::Rule;
use crate::contract::probe::broken;
use crate::contract::probe::{Outcome, Probe, Stop};
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::apart;
use crate::value::text::pair;

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
    let bounds = probe.bounds("returns");
    for later in (token + 1..tokens).filter(|later| kept(row, *later)) {
        let at = [row, later];
        if apart(after.returns[at], before.output.returns[at], 2.0 * bounds[at]) {
            let [found, expected] = pair(after.returns[at], before.output.returns[at]);
            broken!(
                "with another reward at token {token} of row {row}, returns[{row}, {later}] is \
                 {found}, before it was {expected} ± {:.1e}",
                2.0 * bounds[at]
            );
        }
    }
    Ok(())
}
