//! The probabilities of all tokens sum to one.
//!
//! ### Claim
//! Scored one after the other, the tokens of the vocabulary have probabilities that sum to 1.
//!
//! ### Why it matters
//! It shows a wrong normaliser whatever the token: another axis, a shard of the vocabulary, the
//! most likely tokens only, another base of the logarithm. A distribution that sums to 0.9 gives
//! ratios and KL that are off at every token.
//!
//! ### Does not hold for
//! Vocabularies of more than eight tokens, where it would take too many calls.
//!
//! ### Bugs it has caught
//! Vocabulary-parallel log-softmax without the reduction over shards.
//!
//! ### Example
//! ```diff
//! -    shards = scaled.chunk(2, dim=-1)
//! -    log_probs = torch.cat([torch.log_softmax(shard, dim=-1) for shard in shards], dim=-1)
//! +    log_probs = torch.log_softmax(scaled, dim=-1)
//! ```

use super::with_tokens;
use crate::token_log_probs::generate::argmax;
use crate::token_log_probs::{TokenLogProbs, position, scored, vocabulary};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "softmax-over-another-axis",
        "normaliser-without-the-scored-token",
        "normalised-over-the-most-likely-tokens",
        "normalised-within-a-shard",
        "logarithm-in-another-base",
        "temperature-applied-to-the-log-probabilities",
    ],
    check,
);

/// The largest vocabulary that is gone through token by token.
const LARGEST: usize = 8;

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let size = vocabulary(case);
    if size > LARGEST {
        return Err(Stop::Vacuous);
    }
    let mut sums = ndarray::Array2::from_elem(probe.finite_output()?.output.log_probs.dim(), 0.0);
    let mut allowed = sums.clone();
    for entry in 0..size {
        // Where this token cannot be scored, another one stands in and is not counted.
        let possible = |row, column| case.logits[[row, column, entry]].is_finite();
        let asked = with_tokens(case, options, |row, column, _| match possible(row, column) {
            true => entry,
            false => argmax(&position(case, row, column).to_vec()),
        });
        let output = probe.call(&asked)?;
        let bounds = probe.bounds_in(&probe.expected_of(&asked), "log_probs");
        for (row, column, _) in scored(case, options).filter(|(r, c, _)| possible(*r, *c)) {
            let log_prob = output.log_probs[[row, column]];
            sums[[row, column]] += log_prob.exp();
            allowed[[row, column]] += (log_prob + bounds[[row, column]]).exp() - log_prob.exp();
        }
    }
    for ((row, column), sum) in sums.indexed_iter() {
        let allowed = allowed[[row, column]];
        if apart(*sum, 1.0, allowed) {
            broken!(
                "at [{row}, {column}] the probabilities of the {size} tokens sum to {}, expected \
                 1 ± {allowed:.1e}",
                rounded(*sum),
            );
        }
    }
    Ok(())
}
