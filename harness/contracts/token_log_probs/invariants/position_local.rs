//! A log-probability depends on nothing but its own position.
//!
//! ### Claim
//! Changing the logits of all other positions, and all other tokens, changes nothing at a position.
//!
//! ### Why it matters
//! Off by one along a row, transposed when N = T, normalised over the wrong axis, gathered with the
//! tokens of another row: the numbers look like log-probabilities and belong to other tokens.
//!
//! ### Does not hold for
//! Nothing: it holds for every implementation.
//!
//! ### Bugs it has caught
//! trl #2058 and #5905: logits not shifted against the tokens. open-instruct #1549: shifted twice.
//!
//! ### Example
//! Under `shift="next"`:
//! ```diff
//! -        logits, tokens = logits[:, :-1], tokens[:, :-1]
//! +        logits, tokens = logits[:, :-1], tokens[:, 1:]
//! ```

use crate::token_log_probs::{Options, TokenLogProbs, TokenLogProbsCase, scored, vocabulary};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "logits-not-shifted",
        "shifted-twice",
        "shifted-although-not-declared",
        "softmax-over-another-axis",
        "tokens-of-another-row",
        "normaliser-of-another-position",
        "rows-and-columns-swapped",
        "running-sum-over-the-row",
    ],
    check,
);

/// At most this many positions are kept, one after the other.
const POSITIONS: usize = 3;

/// What stands in the other positions instead.
const LOGITS: [f64; 7] = [0.0, 3.0, -1.0, 1.0, 8.0, -2.0, 0.5];

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    if case.tokens.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let bounds = probe.related("log_probs");
    let positions: Vec<_> = scored(case, options).collect();
    for kept in probe.pick.shuffled(positions.len()).into_iter().take(POSITIONS) {
        let (row, column, _) = positions[kept];
        let after = probe.call(&others_changed(case, options, (row, column)))?;
        let allowed = 2.0 * bounds[[row, column]];
        let (from, to) = (before.output.log_probs[[row, column]], after.log_probs[[row, column]]);
        let what = format_args!(
            "with other logits and tokens everywhere else, log_probs[{row}, {column}]"
        );
        near(what, to, from, allowed)?;
    }
    Ok(())
}

/// The case with other logits and tokens everywhere but at one scored position.
fn others_changed(
    case: &TokenLogProbsCase,
    options: &Options,
    (row, column): (usize, usize),
) -> TokenLogProbsCase {
    let size = vocabulary(case) as i64;
    let mut changed = case.clone();
    for ((r, c, entry), logit) in changed.logits.indexed_iter_mut() {
        if (r, c) != (row, column) {
            *logit = LOGITS[(5 * r + 3 * c + entry) % LOGITS.len()];
        }
    }
    let own = (row, column + options.shift.offset());
    for (at, token) in changed.tokens.indexed_iter_mut() {
        if at != own {
            *token = (*token + 1) % size;
        }
    }
    changed
}
