//! What came before a token has no part in its advantage.
//!
//! ### Claim
//! Changing a token's reward or value changes nothing at the tokens after it.
//!
//! ### Why it matters
//! A token is credited with what it led to. A recursion from the start, or a value of the step
//! before, credits it with what was there before it was chosen.
//!
//! ### Does not hold for
//! Advantages with `whiten: true`, which share a mean and a deviation; their returns are checked.
//!
//! ### Bugs it has caught
//! trl #137: the value of the state before the token's own.
//!
//! ### Example
//! ```diff
//! -    for step in range(rewards.shape[1]):
//! +    for step in reversed(range(rewards.shape[1])):
//! ```

use super::tokens;
use crate::gae::Gae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Gae> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["recursion-from-the-start", "values-one-step-early"],
    check,
);

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let mut places = Vec::new();
    let tokens = tokens(probe.case);
    for (row, tokens) in tokens.iter().enumerate() {
        places.extend((1..tokens.len()).map(|at| (row, at)));
    }
    if places.is_empty() {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let (row, at) = *probe.pick.one(&places);
    let (token, later) = (tokens[row][at - 1], &tokens[row][at..]);
    let mut changed = probe.case.clone();
    changed.rewards[[row, token]] = *probe.pick.one(&[5.0, -3.0, 64.0]);
    changed.values[[row, token]] = *probe.pick.one(&[-7.0, 2.0, 32.0]);
    let after = probe.call(&changed)?;
    let fields = [
        ("advantages", &before.output.advantages, &after.advantages),
        ("returns", &before.output.returns, &after.returns),
    ];
    for (field, before, after) in fields {
        if field == "advantages" && probe.options.whiten {
            continue;
        }
        let later = |[r, t]: [usize; 2]| r == row && later.contains(&t);
        unchanged(
            format_args!("with another reward and value at token {token} of row {row}, {field}"),
            after,
            before,
            &only(2.0 * probe.related(field), later),
        )?;
    }
    Ok(())
}
