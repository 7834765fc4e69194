//! All tokens of a row have one advantage.
//!
//! ### Claim
//! All tokens of a row have the same advantage.
//!
//! ### Why it matters
//! The outcome judges the completion as a whole. An advantage that changes inside a row was
//! broadcast along the wrong axis or belongs to another row.
//!
//! ### Does not hold for
//! Rows of one token.
//!
//! ### Bugs it has caught
//! trl 4db63af98: with as many rows as tokens, token t of every row gets the advantage of row t.
//!
//! ### Example
//! ```diff
//! -    return advantages * mask
//! +    return advantages[:, None] * mask
//! ```

use crate::outcome_advantage::OutcomeAdvantage;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<OutcomeAdvantage> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "row-advantage-along-columns",
        "advantage-at-the-last-token-only",
        "tokens-keep-their-own-reward",
    ],
    check,
);

fn check(probe: &mut Probe<'_, OutcomeAdvantage>) -> Outcome {
    let returned = probe.output()?;
    let advantages = &returned.output.advantages;
    let bounds = 2.0 * probe.bounds("advantages");
    let mut checked = false;
    for (row, mask) in probe.case.mask.rows().into_iter().enumerate() {
        let mut tokens = (0..mask.len()).filter(|token| mask[*token]);
        let Some(first) = tokens.next() else { continue };
        for token in tokens {
            checked = true;
            let (found, expected) = (advantages[[row, token]], advantages[[row, first]]);
            // Two NaN are the business of the law `finite`.
            let both_nan = found.is_nan() && expected.is_nan();
            if !both_nan && apart(found, expected, bounds[[row, token]]) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "advantages[{row}, {token}] is {found}, but advantages[{row}, {first}] of the \
                     same row is {expected}"
                );
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
