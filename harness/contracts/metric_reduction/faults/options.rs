//! Options that are read wrong, or not at all.

use super::{Fault, always};
use crate::metric_reduction::{One, Options, Unit};
use shakedown_core::numeric::conventions::EmptyMask;

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("rows-for-tokens", "one number a row (its mean, its sum), where tokens count")
            .seen("trl #1705 (5bcb8ad0d): means of sequences for a mean of tokens")
            .as_if(&[
                |options| Options { unit: Unit::RowMean, ..options },
                |options| Options { unit: Unit::RowSum, ..options },
            ]),
        Fault::new("tokens-for-rows", "one number a token where rows count: long rows weigh more")
            .seen("an option without effect")
            .under("{unit: row-mean}")
            .as_if(&[|options| Options { unit: Unit::Token, ..options }]),
        Fault::new("row-sums-for-row-means", "the sum of each row where its mean is declared")
            .seen("verl's scores are sums of rows, and its lengths are not")
            .under("{unit: row-mean}")
            .as_if(&[|options| Options { unit: Unit::RowSum, ..options }]),
        Fault::new("row-means-for-row-sums", "the mean of each row where its sum is declared")
            .seen("verl's scores are sums of rows, and its lengths are not")
            .under("{unit: row-sum}")
            .as_if(&[|options| Options { unit: Unit::RowMean, ..options }]),
        Fault::new("ev-epsilon-not-applied", "nothing is added to the variance of the targets")
            .seen("verl adds 1e-5, others nothing")
            .under("{ev_epsilon: 1.0e-2}")
            .as_if(&[|options| Options { ev_epsilon: 0.0, ..options }]),
        Fault::new("ev-epsilon-unasked", "1e-5 (1e-2) is added to the variance of the targets")
            .seen("verl adds 1e-5, others nothing")
            .as_if(&[
                |options| Options { ev_epsilon: 1e-2, ..options },
                |options| Options { ev_epsilon: 1e-5, ..options },
            ]),
        Fault::new(
            "one-number-gives-nan",
            "the deviation of one number is NaN where 0 is declared",
        )
        .seen("ROLL #475, #476 (370cb24c)")
        .under("{one: zero}")
        .as_if(&[|options| Options { one: One::Nan, ..options }]),
        Fault::new(
            "one-number-gives-zero",
            "one number has a deviation of 0 where NaN is declared",
        )
        .seen("a guard against NaN where a reader is to see that there is none")
        .as_if(&[|options| Options { one: One::Zero, ..options }]),
        Fault::new("nothing-gives-nan", "0/0 of no number at all, where 0 is declared")
            .seen("verl #906; OpenRLHF masked_mean")
            .as_if(&[|options| Options { empty_mask: EmptyMask::Nan, ..options }]),
        Fault::new("nothing-gives-zero", "0 of no number at all, where NaN is declared")
            .seen("count.clamp(min=1), where TRL's nanmean gives NaN")
            .under("{empty_mask: nan}")
            .as_if(&[|options| Options { empty_mask: EmptyMask::Zero, ..options }]),
        Fault::new(
            "nothing-has-infinite-extremes",
            "the extremes of no number at all are ±∞, or the large numbers put under the mask",
        )
        .seen("`masked_fill(~mask, inf).min()`; TRL's nanmin gives NaN there")
        .made_of([f64::INFINITY, f64::from(f32::MAX), 1e9, 1e10, 1e8, 1e6].map(|large| {
            always(move |step, metrics| {
                if step.all.is_empty() {
                    (metrics.min, metrics.max) = (large, -large);
                }
            })
        })),
    ]
}
