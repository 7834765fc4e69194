//! Two tokens differ as their logits do.
//!
//! ### Claim
//! Log-probabilities at one position differ as their logits do, divided by the temperature.
//!
//! ### Why it matters
//! The normaliser cancels, so what is left is the temperature itself. Log-probabilities taken at
//! temperature 1 of tokens that were sampled at 0.6 belong to another policy: ratios are wrong
//! from the first step on, although policy, old and reference agree with each other.
//!
//! ### Does not hold for
//! Positions with a single possible token.
//!
//! ### Bugs it has caught
//! trl #3029 and unsloth-zoo #832: the temperature not applied.
//!
//! ### Example
//! Under `temperature=0.6`:
//! ```diff
//! -    log_probs = torch.log_softmax(logits, dim=-1)
//! +    log_probs = torch.log_softmax(scaled, dim=-1)
//! ```

use super::{another_token, with_tokens};
use crate::token_log_probs::{TokenLogProbs, scored};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::Configuration,
    &[
        "temperature-not-applied",
        "temperature-multiplied",
        "temperature-applied-twice",
        "most-likely-token-scored",
        "logarithm-in-another-base",
        "averaged-over-the-vocabulary",
        "softcap-applied",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let before = probe.finite_output()?;
    let asked =
        with_tokens(case, options, |row, column, token| another_token(case, (row, column), token));
    if asked.tokens == case.tokens {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&asked)?;
    let other = probe.expected_of(&asked);
    let allowed = probe.bounds("log_probs") + probe.bounds_in(&other, "log_probs");
    for ((row, column, a), (_, _, b)) in scored(case, options).zip(scored(&asked, options)) {
        let difference = case.logits[[row, column, b]] - case.logits[[row, column, a]];
        let expected = difference / options.temperature;
        let found = after.log_probs[[row, column]] - before.output.log_probs[[row, column]];
        let allowed = allowed[[row, column]];
        if apart(found, expected, allowed) {
            broken!(
                "at [{row}, {column}] the logits of tokens {b} and {a} differ by {}, their \
                 log-probabilities by {}, expected {} ± {allowed:.1e}",
                rounded(difference),
                rounded(found),
                rounded(expected),
            );
        }
    }
    Ok(())
}
