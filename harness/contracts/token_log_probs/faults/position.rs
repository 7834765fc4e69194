//! Faults of where things stand: what scores what, and what becomes of the result.

use ndarray::Axis;

use super::behaviour::{
    by_position, from_rounded, in_half, in_order, moved, normaliser_in_half, right, right_at,
    stored, through, weighted, with_token, with_tokens_at,
};
use crate::token_log_probs::generate::argmax;
use crate::token_log_probs::{TokenLogProbs, columns};
use shakedown_core::value::place::Dtype;

type Fault = shakedown_core::contract::fault::Fault<TokenLogProbs>;

/// Logits score the token of another position.
pub(super) fn shift() -> Vec<Fault> {
    vec![
        Fault::new(
            "logits-not-shifted",
            "logits at t score the token at t where the token at t + 1 is declared",
        )
        .seen("trl #2058 (a5b98fcf9), #5905 (5899ae6c3)")
        .under("{shift: next}")
        .gives(&[
            // logits[:, 1:] against tokens[:, 1:]
            |case, options, dtype| moved(case, options, dtype, |c, _| (c + 1, Some(c + 1))),
            // logits[:, :-1] against tokens[:, :-1]
            |case, options, dtype| moved(case, options, dtype, |c, _| (c, Some(c))),
        ]),
        Fault::new("shifted-twice", "logits at t score the token at t + 2")
            .seen("open-instruct #1549 (24080cde7)")
            .under("{shift: next}")
            .gives(&[
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, (c + 2 < length).then_some(c + 2)))
                },
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, Some((c + 2) % length)))
                },
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, Some((c + 2).min(length - 1))))
                },
            ]),
        Fault::new(
            "shifted-although-not-declared",
            "logits at t score the token at t + 1 (or t - 1) where the token at t is declared",
        )
        .seen("open-instruct #1549 (24080cde7): shifted by the caller and again inside")
        .gives(&[
            |case, options, dtype| {
                moved(case, options, dtype, |c, length| (c, (c + 1 < length).then_some(c + 1)))
            },
            |case, options, dtype| {
                moved(case, options, dtype, |c, length| (c, Some((c + 1) % length)))
            },
            |case, options, dtype| moved(case, options, dtype, |c, _| (c, c.checked_sub(1))),
            |case, options, dtype| {
                moved(case, options, dtype, |c, length| (c, Some((c + length - 1) % length)))
            },
        ]),
    ]
}

/// Another token is scored.
pub(super) fn tokens() -> Vec<Fault> {
    vec![
        Fault::new(
            "most-likely-token-scored",
            "the log-probability of the most likely token, not of the sampled one",
        )
        .seen("NeMo-RL #3297 (78965b37f)")
        .gives(&[|case, options, dtype| with_token(case, options, dtype, |at| argmax(at.logits))]),
        Fault::new(
            "least-likely-token-scored",
            "the log-probability of the least likely token, not of the sampled one",
        )
        .seen("an ascending sort for a descending one; compare NeMo-RL #3297 (78965b37f)")
        .gives(&[|case, options, dtype| {
            with_token(case, options, dtype, |at| {
                let negated: Vec<f64> = at
                    .logits
                    .iter()
                    .map(|x| if x.is_finite() { -x } else { f64::NEG_INFINITY })
                    .collect();
                argmax(&negated)
            })
        }]),
    ]
}

/// Right, but rounded to a half format or not kept.
pub(super) fn kept() -> Vec<Fault> {
    vec![
        Fault::new(
            "log-softmax-in-half-precision",
            "softmax, pick and subtraction in bf16 or f16, or the result stored in it",
        )
        .seen("OpenRLHF #634 (dfd840cb); slime #245 (9a291fca7)")
        .gives(&[
            |case, options, _| in_half(case, options, Dtype::Bf16),
            |case, options, _| in_half(case, options, Dtype::F16),
            |case, options, _| normaliser_in_half(case, options, Dtype::Bf16),
            |case, options, _| normaliser_in_half(case, options, Dtype::F16),
            |case, options, dtype| stored(case, options, dtype, Dtype::Bf16),
            |case, options, dtype| stored(case, options, dtype, Dtype::F16),
            |case, options, dtype| from_rounded(case, options, dtype, Dtype::Bf16),
            |case, options, dtype| from_rounded(case, options, dtype, Dtype::F16),
            |case, options, dtype| through(case, options, dtype, Dtype::Bf16),
            |case, options, dtype| through(case, options, dtype, Dtype::F16),
        ]),
        Fault::new(
            "last-real-column-trimmed",
            "the last token of every row is never scored: 0 in its place",
        )
        .seen("trl #2332 (7f2ccbe3a)")
        .gives(&[|case, options, dtype| {
            let last = columns(case, options) - 1;
            by_position(case, options, |at| {
                if at.column == last {
                    (0.0, vec![0.0; at.logits.len()])
                } else {
                    right_at(&at, dtype)
                }
            })
        }]),
    ]
}

/// Values of other ids, rows or columns.
pub(super) fn places() -> Vec<Fault> {
    vec![
        Fault::new(
            "token-ids-off-by-one",
            "scores the token after (or before) the sampled one in the vocabulary",
        )
        .seen("1-based ids; an added token that moves the others")
        .gives(&[
            |case, options, dtype| {
                with_token(case, options, dtype, |at| (at.token + 1) % at.logits.len())
            },
            |case, options, dtype| {
                with_token(case, options, dtype, |at| {
                    (at.token + at.logits.len() - 1) % at.logits.len()
                })
            },
            |case, options, dtype| {
                with_token(case, options, dtype, |at| (at.token + 1).min(at.logits.len() - 1))
            },
            |case, options, dtype| {
                with_token(case, options, dtype, |at| at.token.saturating_sub(1))
            },
        ]),
        Fault::new(
            "tokens-of-another-row",
            "every row is scored with the tokens of the first, of the next, or of row t",
        )
        .seen("a broadcast index, compare trl 4db63af98")
        .on(&[
            |case, _| with_tokens_at(case, |_, t| (0, t)),
            |case, _| {
                let rows = case.tokens.nrows();
                with_tokens_at(case, |n, t| ((n + 1) % rows, t))
            },
            |case, _| {
                let rows = case.tokens.nrows();
                with_tokens_at(case, |n, t| (rows - 1 - n, t))
            },
            |case, _| {
                let square = case.tokens.is_square();
                with_tokens_at(case, |n, t| if square { (t, n) } else { (n, t) })
            },
        ]),
        Fault::new(
            "rows-and-columns-swapped",
            "the output of N rows and T = N columns comes back transposed",
        )
        .seen("sequence-first against batch-first; shows at N = T only, compare trl #6095")
        .gives(&[|case, options, dtype| {
            let mut output = right(case, options, dtype);
            if output.log_probs.is_square() {
                output.log_probs = output.log_probs.t().as_standard_layout().into_owned();
            }
            output
        }]),
        Fault::new(
            "rows-left-in-sorted-order",
            "the rows come back in another order: reversed, or sorted by their first token",
        )
        .seen("verl #1943 (b4aa2dce8), #2185, #1440")
        .gives(&[
            |case, options, dtype| {
                let order: Vec<usize> = (0..case.tokens.nrows()).rev().collect();
                in_order(right(case, options, dtype), &order)
            },
            |case, options, dtype| {
                let mut order: Vec<usize> = (0..case.tokens.nrows()).collect();
                order.sort_by_key(|row| case.tokens.row(*row).to_vec());
                in_order(right(case, options, dtype), &order)
            },
        ]),
        Fault::new(
            "running-sum-over-the-row",
            "each token gets the sum (or all get the mean) of the log-probabilities of its row",
        )
        .seen("sequence log-probabilities where token log-probabilities are declared")
        .gives(&[
            |case, options, dtype| {
                let count = columns(case, options);
                let mut output = weighted(right(case, options, dtype), |t| count - t);
                output.log_probs.accumulate_axis_inplace(Axis(1), |before, sum| *sum += before);
                output
            },
            |case, options, dtype| {
                let count = columns(case, options);
                let mut output = weighted(right(case, options, dtype), |_| count);
                for mut row in output.log_probs.rows_mut() {
                    let sum = row.sum();
                    row.fill(sum);
                }
                output
            },
            |case, options, dtype| {
                let mut output = right(case, options, dtype);
                for mut row in output.log_probs.rows_mut() {
                    let mean = row.mean().unwrap_or(0.0);
                    row.fill(mean);
                }
                output
            },
        ]),
    ]
}
