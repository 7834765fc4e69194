//! Each return is made of what the next token has.
//!
//! ### Claim
//! A token's return is its reward plus γ times a mix of the next token's value and return.
//!
//! ### Why it matters
//! λ mixes them: `R = r + γ·((1 − λ)·V' + λ·R')`. It ties every token to its neighbour, so one
//! look shows where a row went wrong, and it holds whether or not the advantages are whitened.
//!
//! ### Does not hold for
//! Nothing; where time passes at masked columns (`masked: zero`) each one between two tokens costs
//! γλ, and the value of the column after the token is 0.
//!
//! ### Bugs it has caught
//! CleanRL #494: the λ part of the bracket without the factor of the other part. trl #137: values
//! of the step before.
//!
//! ### Example
//! Under `gamma=0.9`:
//! ```diff
//! -        advantages[:, step] = delta + lam * carried
//! +        advantages[:, step] = delta + gamma * lam * carried
//! ```

use super::tokens;
use crate::gae::{Gae, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Gae> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "values-one-step-early",
        "rewards-one-step-early",
        "returns-from-stale-advantages",
        "returns-without-lambda",
        "next-value-not-discounted",
        "carry-decays-without-gamma",
        "masked-tokens-skipped",
    ],
    check,
);

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let returned = probe.output()?;
    let returns = &returned.output.returns;
    let bounds = probe.bounds("returns");
    let Options { gamma, lam, masked, .. } = *probe.options;
    let mut checked = false;
    for (row, tokens) in tokens(probe.case).into_iter().enumerate() {
        for pair_of_tokens in tokens.windows(2) {
            let [token, next] = [pair_of_tokens[0], pair_of_tokens[1]];
            let gap = if masked == MaskedTokens::Zero { next - token - 1 } else { 0 };
            let decay = gamma * (gamma * lam).powi(gap as i32);
            // With a gap the TD error of its last column brings the value in, and its part of the
            // bracket is V' + λ·(R' − V') all the same.
            let terms = [
                probe.case.rewards[[row, token]],
                decay * (1.0 - lam) * probe.case.values[[row, next]],
                decay * lam * returns[[row, next]],
            ];
            let expected = terms.iter().sum();
            let found = returns[[row, token]];
            // The outputs of a wrong component may be larger than the oracle knows.
            let own = Number::new(expected, terms.iter().map(|term| term.abs()).sum());
            let allowed =
                bounds[[row, token]] + bounds[[row, next]] + probe.tolerance.bound(own, 1);
            if apart(found, expected, allowed) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "returns[{row}, {token}] is {found}, but its reward with the value and the \
                     return of token {next} makes {expected} ± {allowed:.1e}"
                );
            }
            checked = true;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
