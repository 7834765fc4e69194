//! Faults of what is summed up in the normaliser.

use super::behaviour::{among, less, normalised_at, smoothed};
use crate::token_log_probs::TokenLogProbs;

type Fault = shakedown_core::contract::fault::Fault<TokenLogProbs>;

/// The normaliser sums over something else.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "softmax-over-another-axis",
            "the softmax runs over the tokens of a row, or the rows of the batch",
        )
        .seen("dim=1 or dim=0 for dim=-1")
        .gives(&[
            |case, options, _| {
                let length = case.tokens.ncols();
                less(case, options, |n, _, v| (0..length).map(|t| [n, t, v]).collect())
            },
            |case, options, _| {
                let rows = case.tokens.nrows();
                less(case, options, |_, t, v| (0..rows).map(|n| [n, t, v]).collect())
            },
        ]),
        Fault::new(
            "normaliser-without-the-scored-token",
            "the normaliser sums over the other tokens only",
        )
        .seen("a contrastive loss's denominator")
        .gives(&[|case, options, _| among(case, options, |at, entry| entry != at.token)]),
        Fault::new(
            "normaliser-of-another-position",
            "the normaliser of the position before (or after), of the first one, of the first row",
        )
        .seen("a buffer of logsumexp read with the wrong offset")
        .gives(&[
            |case, options, _| normalised_at(case, options, |n, t| (n, t.saturating_sub(1))),
            |case, options, _| {
                let last = case.tokens.ncols() - 1;
                normalised_at(case, options, |n, t| (n, (t + 1).min(last)))
            },
            |case, options, _| normalised_at(case, options, |n, _| (n, 0)),
            |case, options, _| normalised_at(case, options, |_, t| (0, t)),
            |case, options, _| normalised_at(case, options, |_, _| (0, 0)),
        ]),
        Fault::new(
            "normalised-over-the-most-likely-tokens",
            "the normaliser sums over the one, two, three or five largest logits only",
        )
        .seen("top-k log-probabilities of an inference engine taken for all")
        .gives(&[
            |case, options, _| among(case, options, |at, entry| at.rank(entry) < 1),
            |case, options, _| among(case, options, |at, entry| at.rank(entry) < 2),
            |case, options, _| among(case, options, |at, entry| at.rank(entry) < 3),
            |case, options, _| among(case, options, |at, entry| at.rank(entry) < 5),
        ]),
        Fault::new(
            "normalised-within-a-shard",
            "each half of the vocabulary has a normaliser of its own",
        )
        .seen("vocabulary-parallel log-softmax (slime) without the reduction over shards")
        .gives(&[|case, options, _| {
            among(case, options, |at, entry| {
                let half = at.z.len().div_ceil(2);
                (entry < half) == (at.token < half)
            })
        }]),
        Fault::new(
            "first-or-last-entry-left-out",
            "the normaliser misses the last (or the first) entry of the vocabulary",
        )
        .seen("padded vocabularies cut one entry too short")
        .gives(&[
            |case, options, _| among(case, options, |at, entry| entry + 1 < at.z.len()),
            |case, options, _| among(case, options, |_, entry| entry > 0),
        ]),
        Fault::new(
            "averaged-over-the-vocabulary",
            "the mean over the vocabulary, not the scored token; or a tenth of it mixed in",
        )
        .seen("label smoothing of a cross-entropy that nobody switched off")
        .gives(&[
            |case, options, _| smoothed(case, options, 1.0),
            |case, options, _| smoothed(case, options, 0.1),
            |case, options, _| smoothed(case, options, 0.05),
            |case, options, _| smoothed(case, options, 0.01),
        ]),
    ]
}
