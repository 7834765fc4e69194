//! Faults of the gradient alone.

use super::behaviour::{by_position, divided_gradient, gradient, right_at};
use crate::token_log_probs::{TokenLogProbs, scored};

type Fault = shakedown_core::contract::fault::Fault<TokenLogProbs>;

/// Right values with a wrong gradient.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("gradient-doubled", "right values, and a gradient that is counted twice")
            .seen("unsloth-zoo #892 (d491423a)")
            .gives(&[|case, options, dtype| gradient(case, options, dtype, |_, g| 2.0 * g)]),
        Fault::new(
            "gradient-without-temperature",
            "right values; the gradient misses the division by the temperature, or multiplies",
        )
        .seen("custom backward functions, compare unsloth-zoo #892")
        .under("{temperature: 0.6}")
        .gives(&[
            |case, options, dtype| {
                gradient(case, options, dtype, |options, g| g * options.temperature)
            },
            |case, options, dtype| {
                gradient(case, options, dtype, |options, g| g * options.temperature.powi(2))
            },
            |case, options, dtype| {
                gradient(case, options, dtype, |options, g| g / options.temperature)
            },
        ]),
        Fault::new("gradient-zero", "right values; the gradient is exactly 0")
            .seen("unsloth #5230")
            .gives(&[|case, options, dtype| gradient(case, options, dtype, |_, _| 0.0)]),
        Fault::new("gradient-of-the-loss", "right values; the gradient has the opposite sign")
            .seen("cross-entropy's backward reused")
            .gives(&[|case, options, dtype| gradient(case, options, dtype, |_, g| -g)]),
        Fault::new(
            "gradient-of-the-mean",
            "right values; the gradient is divided by the number of tokens, or of rows",
        )
        .seen("a mean inside a custom backward")
        .gives(&[
            |case, options, dtype| {
                let count = scored(case, options).count();
                divided_gradient(case, options, dtype, count)
            },
            |case, options, dtype| divided_gradient(case, options, dtype, case.tokens.nrows()),
        ]),
        Fault::new(
            "gradient-detached-from-the-normaliser",
            "right values; the gradient is onehot, the normaliser has none",
        )
        .seen("logsumexp under no_grad to save memory")
        .gives(&[|case, options, dtype| {
            by_position(case, options, |at| {
                let onehot = (0..at.logits.len()).map(|entry| at.onehot(entry) / at.temperature);
                (right_at(&at, dtype).0, onehot.collect())
            })
        }]),
        Fault::new(
            "gradient-of-the-normaliser-only",
            "right values; the gradient is -softmax, the scored logit has none",
        )
        .seen("an in-place gather that detaches")
        .gives(&[|case, options, dtype| {
            by_position(case, options, |at| {
                let (value, gradient) = right_at(&at, dtype);
                let without = gradient.iter().enumerate();
                let without = without.map(|(v, g)| g - at.onehot(v) / at.temperature);
                (value, without.collect())
            })
        }]),
    ]
}
