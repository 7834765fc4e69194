//! The mean by which the weights are divided.

use super::{Fault, after, count, steps};
use crate::importance_weights::reference::{self, Row};
use crate::importance_weights::{ImportanceWeightsCase, Normalize, Options, Rejected};
use shakedown_core::value::place::Dtype;

/// The weights divided by another quotient, of a sum and of a count.
macro_rules! divided {
    ($quotient:expr) => {
        after(|output, case, options, dtype| {
            let quotient: fn(&ImportanceWeightsCase, &Options, Dtype) -> (f64, f64) = $quotient;
            let (sum, count) = quotient(case, options, dtype);
            output.weights = reference::weights(case, &undivided(options), dtype).weights;
            if options.normalize != Normalize::None && sum > 0.0 && count > 0.0 {
                let round = |x: f64| dtype.arithmetic().round(x);
                output.weights.mapv_inplace(|weight| round(weight / (sum / count)));
            }
        })
    };
}

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("normalize-ignored", "the weights are not divided by their mean")
            .seen("mutation: an option without effect")
            .under("{normalize: tokens}")
            .as_if(&[|options| Options { normalize: Normalize::None, ..options }]),
        Fault::new("normalized-although-not-declared", "the weights are divided by their mean")
            .seen("verl's batch normalisation, slime's too, where none is declared")
            .as_if(&[
                |options| Options { normalize: Normalize::Tokens, ..options },
                |options| Options { normalize: Normalize::Sequences, ..options },
            ]),
        Fault::new(
            "token-mean-for-row-means",
            "one mean over all tokens for the mean of the row means",
        )
        .seen("verl divides by the one at token level, by the other at sequence level")
        .under("{normalize: sequences}")
        .as_if(&[|options| Options { normalize: Normalize::Tokens, ..options }]),
        Fault::new(
            "row-means-for-the-token-mean",
            "the mean of the row means for one over all tokens",
        )
        .seen("compare trlx #509; a mean of means counts short rows more")
        .under("{normalize: tokens}")
        .as_if(&[|options| Options { normalize: Normalize::Sequences, ..options }]),
        Fault::new(
            "normalised-before-the-clamp",
            "divided by the mean, then clamped: the mean is not 1",
        )
        .seen("mutation: two lines exchanged")
        .under("{normalize: tokens}")
        .made_of([
            steps(|s| {
                s.clamped = |_, ratio, _| ratio;
                s.normalized = normalized_then_clamped;
            }),
            steps(|s| s.normalized = normalized_then_clamped),
        ]),
        Fault::new(
            "mean-of-the-unclamped",
            "the weights are divided by the mean of the ratios before the clamp",
        )
        .seen("mutation: the mean is taken of the variable before")
        .under("{normalize: tokens}")
        .made_of([divided!(|case, options, dtype| {
            let free = Options { clamp_low: None, clamp_high: None, ..options.clone() };
            (reference::weights(case, &undivided(&free), dtype).weights.sum(), count(case))
        })]),
        Fault::new("mean-of-the-kept", "the mean leaves out what is dropped")
            .seen("mutation: the mask of what is kept for the mask")
            .under("{normalize: tokens, select: token, select_low: 0.5, select_high: 2.5}")
            .made_of([divided!(|case, options, dtype| {
                let output = reference::weights(case, &undivided(options), dtype);
                let kept = output.keep.as_ref().map_or(0.0, |keep| keep.sum());
                (output.weights.sum(), kept)
            })]),
        Fault::new(
            "mean-of-what-would-be-kept",
            "the mean takes in the weights of what is dropped",
        )
        .seen("mutation: dropped last, after the division")
        .under("{normalize: tokens, select: token, select_low: 0.5, select_high: 2.5}")
        .made_of([divided!(|case, options, dtype| {
            let all = Options { rejected: Rejected::Unchanged, ..undivided(options) };
            (reference::weights(case, &all, dtype).weights.sum(), count(case))
        })]),
        Fault::new("mean-over-padding", "the mean divides by all cells, masked ones too")
            .seen("mutation: `.mean()` of masked weights")
            .under("{normalize: tokens}")
            .made_of([divided!(|case, options, dtype| {
                let sum = reference::weights(case, &undivided(options), dtype).weights.sum();
                (sum, case.mask.len() as f64)
            })]),
        Fault::new(
            "pads-weigh-one-in-the-mean",
            "masked tokens count in the mean with the weight 1",
        )
        .seen("mutation: exp of a masked log-ratio of 0")
        .under("{normalize: tokens}")
        .made_of([divided!(|case, options, dtype| {
            let sum = reference::weights(case, &undivided(options), dtype).weights.sum();
            let cells = case.mask.len() as f64;
            (sum + cells - count(case), cells)
        })]),
        Fault::new("each-row-by-its-own-mean", "each row is divided by its own mean")
            .seen("mutation: a mean along the row, not of the batch")
            .under("{normalize: tokens}")
            .made_of([steps(|s| {
                s.normalized = |rows, weights, _| {
                    let Some(row) = rows.first() else { return };
                    for weights in weights {
                        let mean = row.mean(weights);
                        divide(row, weights, mean);
                    }
                };
            })]),
        Fault::new(
            "empty-rows-in-the-mean",
            "rows without a token count in the mean of the row means",
        )
        .seen("mutation: a mean over N; compare `empty_rows: count` of the losses")
        .under("{normalize: sequences}")
        .made_of([steps(|s| {
            s.normalized = |rows, weights, options| {
                if options.normalize != Normalize::Sequences {
                    return reference::normalized(rows, weights, options);
                }
                let Some(row) = rows.first() else { return };
                let means: Vec<f64> = weights.iter().map(|one| row.mean(one)).collect();
                let mean = row.sum(means) / rows.len() as f64;
                weights.iter_mut().for_each(|weights| divide(row, weights, mean));
            };
        })]),
        Fault::new("sum-to-one", "the weights are divided by their sum: they add up to 1")
            .seen("mutation: self-normalised importance sampling")
            .under("{normalize: tokens}")
            .made_of([divided!(|case, options, dtype| {
                (reference::weights(case, &undivided(options), dtype).weights.sum(), 1.0)
            })]),
        Fault::new("divided-by-the-largest", "the weights are divided by the largest one")
            .seen("mutation: `max` for `mean`")
            .under("{normalize: tokens}")
            .made_of([divided!(|case, options, dtype| {
                let weights = reference::weights(case, &undivided(options), dtype).weights;
                (weights.iter().copied().fold(0.0, f64::max), 1.0)
            })]),
        Fault::new("mean-subtracted", "the mean is subtracted and 1 is added, not divided by")
            .seen("mutation: a baseline for a factor")
            .under("{normalize: tokens}")
            .made_of([steps(|s| {
                s.normalized = |rows, weights, _| {
                    let Some(row) = rows.first() else { return };
                    let mean = row.mean(&weights.concat());
                    for weight in weights.iter_mut().flatten() {
                        *weight = row.round(*weight - mean + 1.0);
                    }
                };
            })]),
        Fault::new("mean-of-nothing-divides", "where everything is dropped the weights are 0/0")
            .seen("mutation: no guard; verl and slime divide by at least 1e-8")
            .under("{normalize: tokens, veto: 0.5}")
            .made_of([steps(|s| {
                s.normalized = |rows, weights, options| {
                    let nothing = weights.iter().flatten().all(|weight| *weight == 0.0);
                    if nothing && options.normalize != Normalize::None {
                        weights.iter_mut().flatten().for_each(|weight| *weight = f64::NAN);
                    }
                    reference::normalized(rows, weights, options);
                };
            })]),
        Fault::new(
            "root-of-the-mean-square",
            "the weights are divided by the root of their mean square",
        )
        .seen("mutation: an RMS norm")
        .under("{normalize: tokens}")
        .made_of([divided!(|case, options, dtype| {
            let weights = reference::weights(case, &undivided(options), dtype).weights;
            ((weights.iter().map(|w| w * w).sum::<f64>() / count(case)).sqrt(), 1.0)
        })]),
    ]
}

/// The same options, without a division.
fn undivided(options: &Options) -> Options {
    Options { normalize: Normalize::None, ..options.clone() }
}

/// Divides weights by their mean, and holds them at the bounds after that.
fn normalized_then_clamped(rows: &[Row], weights: &mut [Vec<f64>], options: &Options) {
    reference::normalized(rows, weights, options);
    let Some(row) = rows.first() else { return };
    for weight in weights.iter_mut().flatten().filter(|weight| **weight != 0.0) {
        *weight = reference::clamped(row, *weight, options);
    }
}

/// Divides weights by a mean, where it is positive.
fn divide(row: &Row, weights: &mut [f64], mean: f64) {
    if mean > 0.0 {
        weights.iter_mut().for_each(|weight| *weight = row.round(*weight / mean));
    }
}
