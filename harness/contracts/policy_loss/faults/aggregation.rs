//! Faults of the sum: other denominators, means of means, options without effect.

use ndarray::Array2;

use super::super::{Options, PolicyLoss, PolicyLossCase, PolicyLossOutput, Ratio};
use super::{Fault, Variant, gradient, loss_as_if, right, tokens, with_loss};
use shakedown_core::contract::rows;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::value::place::Dtype;

/// Means of means, and constants.
pub(super) fn means() -> Vec<Fault> {
    vec![
        Fault::new("aggregate-option-ignored", "the mean over all tokens, whatever is declared")
            .seen("verl #945, #1083 (3e3d9372a)")
            .under("{aggregate: seq-mean-token-mean}")
            .made_of([loss_as_if(|o| o.aggregate = Aggregate::TokenMean)]),
        Fault::new(
            "sequence-mean-called-token-mean",
            "the mean of the rows' means, where the mean over all tokens is declared",
        )
        .seen("trl #2881 (293b62095), #2995, #3021, #3187")
        .made_of([
            mean_of_means(Aggregate::TokenMean, None),
            mean_of_means(Aggregate::TokenMean, Some(EmptyRows::Count)),
        ]),
        Fault::new(
            "token-sum-divided-by-length",
            "the mean of each row, where its sum is declared",
        )
        .seen("verl #931 (4d722b176)")
        .under("{aggregate: seq-mean-token-sum}")
        .made_of([
            mean_of_means(Aggregate::SeqMeanTokenSum, None),
            mean_of_means(Aggregate::SeqMeanTokenSum, Some(EmptyRows::Count)),
        ]),
        Fault::new(
            "token-mean-divided-twice",
            "a mean over tokens is divided by their number again",
        )
        .seen("ROLL d8d7e78f")
        .under("{aggregate: seq-mean-token-mean}")
        .made_of([reweighted(|batch, row, right| match batch.options.aggregate {
            Aggregate::TokenMean => right / batch.tokens,
            Aggregate::SeqMeanTokenMean => right / batch.lengths[row],
            _ => right,
        })]),
        Fault::new("tokens-and-rows-summed", "the sum over all tokens, not divided by anything")
            .seen("NeMo-RL #86 (d1f0609a2)")
            .made_of([loss_as_if(|o| o.aggregate = Aggregate::TokenSum)]),
        Fault::new(
            "norm-by-padded-width",
            "divided by the width of the batch, not by the constant",
        )
        .seen("verl #3741, #4510, #4769; understand-r1-zero 14046dc")
        .under("{aggregate: seq-mean-token-sum-norm, norm_length: 6}")
        .made_of([reweighted(|batch, _, right| match batch.options.aggregate {
            Aggregate::SeqMeanTokenSumNorm => right * batch.norm() / batch.width,
            _ => right,
        })]),
        Fault::new(
            "norm-by-another-length",
            "divided by another length than the constant: of the longest row, or of another limit",
        )
        .seen("verifiers 0c2d18d")
        .under("{aggregate: seq-mean-token-sum-norm, norm_length: 6}")
        .made_of([
            reweighted(|batch, _, right| match batch.options.aggregate {
                Aggregate::SeqMeanTokenSumNorm => {
                    right * batch.norm() / batch.lengths.iter().copied().fold(1.0, f64::max)
                }
                _ => right,
            }),
            reweighted(|batch, _, right| match batch.options.aggregate {
                Aggregate::SeqMeanTokenSumNorm => right / 2.0,
                _ => right,
            }),
        ]),
        Fault::new("norm-not-by-rows", "divided by the constant and not by the number of rows")
            .seen("Dr. GRPO with the sum of the batch")
            .under("{aggregate: seq-mean-token-sum-norm, norm_length: 6}")
            .made_of([reweighted(|batch, _, right| match batch.options.aggregate {
                Aggregate::SeqMeanTokenSumNorm => 1.0 / batch.norm(),
                _ => right,
            })]),
    ]
}

/// What is counted, empty rows, and gradients of other sums.
pub(super) fn counts() -> Vec<Fault> {
    vec![
        Fault::new(
            "denominator-counts-dropped-tokens",
            "tokens that are masked out are left in the count: those of empty rows, or in gaps",
        )
        .seen("trl #6369, #6439 (7c1fa85ad)")
        .made_of([
            reweighted(|batch, row, right| counting(batch, row, right, false)),
            reweighted(|batch, row, right| counting(batch, row, right, true)),
        ]),
        Fault::new("mean-over-padding", "divided by the number of all places, masked ones too")
            .seen("trlx: `.mean()` after the multiplication by the mask")
            .made_of([reweighted(|batch, row, right| match batch.options.aggregate {
                Aggregate::TokenMean => 1.0 / (batch.width * batch.lengths.len() as f64),
                Aggregate::SeqMeanTokenMean => right * batch.lengths[row] / batch.width,
                _ => right,
            })]),
        Fault::new(
            "epsilon-in-the-denominator",
            "divided by the count + ε (1e-3, 1e-4, 1), which also makes 0 of no token at all",
        )
        .seen("NeMo-RL's and verl's masked means with a larger ε than theirs")
        .under("{empty_mask: refuse}")
        .made_of([1e-3, 1e-4, 1.0].map(wider)),
        Fault::new("empty-row-divides-by-zero", "a row without a token makes the loss NaN")
            .seen("open-instruct #1685 (94a17b99a); trl #6320")
            .under("{aggregate: seq-mean-token-mean}")
            .gives(&[|case, options, dtype| {
                let right = right(case, options, dtype);
                let by_row = options.aggregate == Aggregate::SeqMeanTokenMean
                    || options.ratio != Ratio::Token;
                let empty: Vec<usize> = (0..case.mask.nrows())
                    .filter(|row| !case.mask.row(*row).iter().any(|kept| *kept))
                    .collect();
                if !by_row || empty.is_empty() || tokens(&case.mask) == 0 {
                    return right;
                }
                let mut slopes = gradient(&right);
                empty.into_iter().for_each(|row| slopes.row_mut(row).fill(f64::NAN));
                with_loss(right, ndarray::arr0(f64::NAN), Some(slopes))
            }]),
        Fault::new(
            "empty-rows-counted",
            "rows without a token count in the number of rows, although declared not to",
        )
        .seen("TRL's convention where verl's is declared")
        .under("{aggregate: seq-mean-token-mean}")
        .made_of([loss_as_if(|o| o.empty_rows = EmptyRows::Count)]),
        Fault::new(
            "empty-rows-skipped",
            "rows without a token do not count in the number of rows, although declared to",
        )
        .seen("verl's convention where TRL's is declared")
        .under("{aggregate: seq-mean-token-mean, empty_rows: count}")
        .made_of([loss_as_if(|o| o.empty_rows = EmptyRows::Skip)]),
        Fault::new("gradient-of-the-sum", "the loss is divided after its gradient was taken")
            .seen("verl #3332 (e160d3b2e)")
            .gives(&[|case, options, dtype| {
                let sum = Options { aggregate: Aggregate::TokenSum, ..options.clone() };
                let grad_log_probs = right(case, &sum, dtype).grad_log_probs;
                PolicyLossOutput { grad_log_probs, ..right(case, options, dtype) }
            }]),
        Fault::new(
            "gradient-doubled",
            "the gradient is twice, or half, of what belongs to the loss",
        )
        .seen("unsloth-zoo #892 (d491423a)")
        .made_of([scaled(2.0), scaled(0.5)]),
    ]
}

/// The mean of the rows' means where `declared` is declared, and the count of rows perhaps another.
fn mean_of_means(declared: Aggregate, empty_rows: Option<EmptyRows>) -> Variant {
    loss_as_if(move |o| {
        if o.aggregate == declared {
            o.aggregate = Aggregate::SeqMeanTokenMean;
            o.empty_rows = empty_rows.unwrap_or(o.empty_rows);
        }
    })
}

/// What weights are made of.
struct Batch<'a> {
    options: &'a Options,
    mask: &'a Array2<bool>,
    tokens: f64,
    width: f64,
    lengths: Vec<f64>,
}

impl Batch<'_> {
    /// The declared constant.
    fn norm(&self) -> f64 {
        self.options.norm_length.map_or(1.0, f64::from)
    }
}

/// The loss with other weights of the rows: `weight` gets the batch, a row and the right weight of
/// its tokens.
fn reweighted(weight: fn(&Batch<'_>, usize, f64) -> f64) -> Variant {
    Variant::gives(move |case: &_, options: &_, dtype| reweigh(case, options, dtype, weight))
}

fn reweigh(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
    weight: impl Fn(&Batch<'_>, usize, f64) -> f64,
) -> PolicyLossOutput {
    let right_output = right(case, options, dtype);
    let weights = options.aggregate.weights(&case.mask, options.empty_rows, options.norm_length);
    let Some(weights) = weights else { return right_output };
    let lengths = case.mask.rows().into_iter().map(|row| row.iter().filter(|m| **m).count() as f64);
    let batch = Batch {
        options,
        mask: &case.mask,
        tokens: tokens(&case.mask) as f64,
        width: case.mask.ncols() as f64,
        lengths: lengths.collect(),
    };
    let summed = Options { aggregate: Aggregate::TokenSum, ..options.clone() };
    let (mut loss, mut slopes) = (0.0, Array2::zeros(case.mask.dim()));
    for row in (0..case.mask.nrows()).filter(|row| batch.lengths[*row] > 0.0) {
        let of_row: PolicyLossCase = rows::select::<PolicyLoss, _>(case, 'N', &[row]);
        let output = right(&of_row, &summed, dtype);
        let own = weights.row(row).iter().copied().fold(0.0, f64::max);
        let weight = weight(&batch, row, own);
        loss += weight * output.loss[()];
        slopes.row_mut(row).assign(&(gradient(&output).row(0).to_owned() * weight));
    }
    with_loss(right_output, ndarray::arr0(loss), Some(slopes))
}

/// Lengths taken before the last tokens were masked: of gaps too, or only of rows masked as a
/// whole.
fn counting(batch: &Batch<'_>, row: usize, right: f64, gaps: bool) -> f64 {
    let span = |row: usize| match batch.mask.row(row).iter().rposition(|kept| *kept) {
        None => batch.width,
        Some(last) if gaps => (last + 1) as f64,
        Some(_) => batch.lengths[row],
    };
    match batch.options.aggregate {
        Aggregate::TokenMean => 1.0 / (0..batch.lengths.len()).map(span).sum::<f64>(),
        Aggregate::SeqMeanTokenMean => right * batch.lengths[row] / span(row),
        _ => right,
    }
}

/// The right loss, with its gradient times a factor.
fn scaled(by: f64) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let right = right(case, options, dtype);
        PolicyLossOutput { grad_log_probs: Some(gradient(&right) * by), ..right }
    })
}

/// Means with a larger count than there are tokens.
fn wider(epsilon: f64) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        if tokens(&case.mask) == 0 {
            return right(case, &Options { empty_mask: EmptyMask::Zero, ..options.clone() }, dtype);
        }
        reweigh(case, options, dtype, |batch, row, right| match options.aggregate {
            Aggregate::TokenMean => 1.0 / (batch.tokens + epsilon),
            Aggregate::SeqMeanTokenMean => {
                right * batch.lengths[row] / (batch.lengths[row] + epsilon)
            }
            _ => right,
        })
    })
}
