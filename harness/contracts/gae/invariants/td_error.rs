//! With λ = 0 nothing but the next token counts.
//!
//! ### Claim
//! With λ = 0 an advantage is the TD error: the reward, plus γ times the next value, less the own.
//!
//! ### Why it matters
//! λ is an option that is easily read from the wrong place or not at all; at its two ends GAE is a
//! formula of one line.
//!
//! ### Does not hold for
//! `lam` other than 0, and `whiten: true`.
//!
//! ### Bugs it has caught
//! Configurations whose λ never reached the function that takes it.
//!
//! ### Example
//! Under `lam=0.0`:
//! ```diff
//! -    advantages = estimated(rewards, values, mask, gamma)
//! +    advantages = estimated(rewards, values, mask, gamma, lam)
//! ```

use super::tokens;
use crate::gae::Gae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Gae> = Rule::new(Pitfall::Configuration, &["lambda-fixed"], check)
    .under(|options| options.lam == 0.0 && !options.whiten);

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("advantages");
    let mut checked = false;
    for (row, tokens) in tokens(probe.case).into_iter().enumerate() {
        for (at, token) in tokens.iter().enumerate() {
            let next = tokens
                .get(at + 1)
                .filter(|next| probe.options.masked == MaskedTokens::Skip || **next == token + 1);
            let ahead = next.map_or(0.0, |next| probe.case.values[[row, *next]]);
            let at = [row, *token];
            let (reward, value) = (probe.case.rewards[at], probe.case.values[at]);
            let expected = reward + probe.options.gamma * ahead - value;
            let found = returned.output.advantages[at];
            if apart(found, expected, bounds[at]) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "advantages[{row}, {token}] is {found}, its TD error is {expected} ± {:.1e}",
                    bounds[at]
                );
            }
            checked = true;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
