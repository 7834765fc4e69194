//! With λ = 1 the values of later tokens do not count.
//!
//! ### Claim
//! With λ = 1 an advantage is the discounted sum of the rewards ahead, less the token's value.
//!
//! ### Why it matters
//! With λ = 1 the values of all later tokens cancel. Where one does not, a TD error took a value
//! from the wrong place, or the recursion stopped in the middle of a row.
//!
//! ### Does not hold for
//! `lam` other than 1, and `whiten: true`.
//!
//! ### Bugs it has caught
//! verl #7278, in the recursion for returns: it starts anew after a tool's output.
//!
//! ### Example
//! Under `gamma=0.9, lam=1.0`:
//! ```diff
//! -        delta = rewards[:, step] + next_values - values[:, step]
//! +        delta = rewards[:, step] + gamma * next_values - values[:, step]
//! ```

use super::tokens;
use crate::gae::{Gae, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Gae> =
    Rule::new(Pitfall::AdvantageNormalisation, &["next-value-not-discounted"], check)
        .under(|options| options.lam == 1.0 && !options.whiten);

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("advantages");
    let Options { gamma, masked, .. } = *probe.options;
    let mut checked = false;
    for (row, tokens) in tokens(probe.case).into_iter().enumerate() {
        let mut sum = 0.0;
        for (at, token) in tokens.iter().enumerate().rev() {
            let steps = match tokens.get(at + 1) {
                Some(next) if masked == MaskedTokens::Zero => next - token,
                _ => 1,
            };
            let at = [row, *token];
            sum = probe.case.rewards[at] + gamma.powi(steps as i32) * sum;
            let (found, expected) = (returned.output.advantages[at], sum - probe.case.values[at]);
            if apart(found, expected, bounds[at]) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "advantages[{row}, {token}] is {found}; the rewards ahead less its value make \
                     {expected} ± {:.1e}",
                    bounds[at]
                );
            }
            checked = true;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
