//! What must hold of `token-log-probs`: the laws that apply, and one file for each of its own.

use crate::token_log_probs::{Options, TokenLogProbs, TokenLogProbsCase, position, scored};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<TokenLogProbs>> {
    let mut all = laws::universal_and(&[(
        "finite",
        &["maximum-not-subtracted", "logarithm-of-the-softmax", "minus-infinity-gives-nan"],
    )]);
    all.extend([
        laws::oracle::law().catching(&[
            "temperature-not-applied",
            "logits-not-shifted",
            "shifted-twice",
            "most-likely-token-scored",
            "log-softmax-in-half-precision",
            "last-real-column-trimmed",
        ]),
        laws::gradient::law().catching(&[
            "gradient-doubled",
            "gradient-without-temperature",
            "gradient-zero",
            "gradient-of-the-loss",
        ]),
        laws::row_permutation::law()
            .catching(&["rows-left-in-sorted-order", "tokens-of-another-row"]),
        laws::row_split::law().catching(&["softmax-over-another-axis", "tokens-of-another-row"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    TokenLogProbs;
    non_positive,
    probabilities_sum_to_one,
    uniform,
    dominant_token,
    log_ratio_of_tokens,
    shift_invariant,
    vocabulary_permutation,
    position_local,
    minus_infinity_removes_a_token,
    gradient_sums_to_zero,
}

/// The case with a token of its own for every scored position.
fn with_tokens(
    case: &TokenLogProbsCase,
    options: &Options,
    mut token: impl FnMut(usize, usize, usize) -> usize,
) -> TokenLogProbsCase {
    let mut changed = case.clone();
    for (row, column, old) in scored(case, options) {
        let new = token(row, column, old);
        changed.tokens[[row, column + options.shift.offset()]] = new as i64;
    }
    changed
}

/// The next entry of a position's vocabulary that may be scored; `other` itself where there is
/// none.
fn another_token(case: &TokenLogProbsCase, (row, column): (usize, usize), other: usize) -> usize {
    let logits = position(case, row, column);
    (1..logits.len())
        .map(|step| (other + step) % logits.len())
        .find(|entry| logits[*entry].is_finite())
        .unwrap_or(other)
}
