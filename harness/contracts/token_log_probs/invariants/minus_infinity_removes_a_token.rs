//! A logit of -inf is a token that is not there.
//!
//! ### Claim
//! A token with logit -inf leaves the others the log-probabilities that they have in a vocabulary
//! without it.
//!
//! ### Why it matters
//! Forbidden and padded tokens have -inf. One 0 · inf makes the position NaN, and a -inf replaced
//! by a number gives probability to tokens that cannot come.
//!
//! ### Does not hold for
//! The scored token itself, which is never forbidden here; vocabularies of two.
//!
//! ### Bugs it has caught
//! Means and entropies over the whole vocabulary, which are NaN or -inf beside one forbidden token.
//!
//! ### Example
//! ```diff
//! -    chosen = torch.nn.functional.one_hot(tokens, logits.shape[-1])
//! -    return (log_probs * chosen).sum(dim=-1)
//! +    return log_probs.gather(-1, tokens[..., None]).squeeze(-1)
//! ```

use ndarray::Axis;

use super::{another_token, with_tokens};
use crate::token_log_probs::generate::with_vocabulary;
use crate::token_log_probs::{TokenLogProbs, vocabulary};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::StabilityConstant,
    &["minus-infinity-replaced-by-a-number", "minus-infinity-gives-nan"],
    check,
);

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let size = vocabulary(case);
    if size < 3 {
        return Err(Stop::Vacuous);
    }
    let removed = probe.pick.below(size);
    let mut forbidden = with_tokens(case, options, |row, column, token| match token == removed {
        true => another_token(case, (row, column), removed),
        false => token,
    });
    forbidden.logits.index_axis_mut(Axis(2), removed).fill(f64::NEG_INFINITY);
    let kept: Vec<usize> = (0..size).filter(|entry| *entry != removed).collect();
    let without = with_vocabulary(&forbidden, &kept);
    let expected = probe.call(&without)?;
    if !shakedown_core::contract::probe::is_finite(&expected) {
        return Err(Stop::Vacuous);
    }
    let found = probe.call(&forbidden)?;
    let allowed = 2.0 * probe.bounds_in(&probe.expected_of(&forbidden), "log_probs");
    let what = format_args!(
        "with -inf for token {removed}, compared with a vocabulary without it, log_probs"
    );
    close(what, &found.log_probs, &expected.log_probs, &allowed)
}
