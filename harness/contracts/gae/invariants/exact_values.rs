//! A critic that is right leaves nothing to be surprised about.
//!
//! ### Claim
//! Where the values are the discounted rewards ahead, every advantage is 0.
//!
//! ### Why it matters
//! It needs no number from anywhere else and holds for every λ. A value that belongs to the state
//! before or after the token's own shows at once.
//!
//! ### Does not hold for
//! `whiten: true`; rows with a gap where time passes there, as the value of a gap counts as 0.
//!
//! ### Bugs it has caught
//! trl #137: `values[start - 1 : end - 1]` beside `log_probs[start : end]`.
//!
//! ### Example
//! ```diff
//! -        delta = rewards[:, step] + gamma * next_values - values[:, step - 1]
//! +        delta = rewards[:, step] + gamma * next_values - values[:, step]
//! ```

use super::tokens;
use crate::gae::{Gae, Options};
use shakedown_core::contract::prelude::*;
use shakedown_core::generate::masks::has_hole;

pub(super) const RULE: Rule<Gae> = Rule::new(
    Pitfall::MaskingAlignment,
    &["values-one-step-early", "bootstrap-with-the-last-value"],
    check,
)
.under(|options| !options.whiten);

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let Options { gamma, lam, masked, .. } = *probe.options;
    let has_gap = |row: usize| has_hole(probe.case.mask.row(row));
    let rows: Vec<(usize, Vec<usize>)> = tokens(probe.case)
        .into_iter()
        .enumerate()
        .filter(|(row, tokens)| {
            !tokens.is_empty() && (masked == MaskedTokens::Skip || !has_gap(*row))
        })
        .collect();
    if rows.is_empty() {
        return Err(Stop::Vacuous);
    }
    let (row, tokens) = probe.pick.one(&rows).clone();
    let mut exact = probe.case.clone();
    // Storing an exact value may round it, and the TD errors of its neighbours feel that.
    let mut slack = vec![0.0; tokens.len()];
    let (mut ahead, mut carried) = (0.0, 0.0);
    for (at, token) in tokens.iter().enumerate().rev() {
        let next = gamma * ahead;
        ahead = probe.case.rewards[[row, *token]] + next;
        exact.values[[row, *token]] = probe.place.dtype.round(ahead);
        let roundoff = probe.place.dtype.unit_roundoff();
        carried = roundoff * (next.abs() + ahead.abs()) + gamma * lam * carried;
        slack[at] = carried;
    }
    let after = probe.call(&exact)?;
    let bounds = probe.bounds_in(&probe.expected_of(&exact), "advantages");
    for (token, slack) in tokens.iter().zip(slack) {
        let found = after.advantages[[row, *token]];
        let allowed = bounds[[row, *token]] + slack;
        let what = format_args!(
            "with the rewards ahead as values of row {row}, advantages[{row}, {token}]"
        );
        near(what, found, 0.0, allowed)?;
    }
    Ok(())
}
