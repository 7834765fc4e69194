//! The reference implementation of `value-loss`, as a trainer would write it: a token's error,
//! then the sum, each step of which a fault may replace.

use ndarray::{Array2, arr0};

use super::{Options, ValueLossCase, ValueLossOutput, is_empty};
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::numeric::tape::{Tape, Var};
use shakedown_core::value::place::Dtype;

/// A token that counts.
#[derive(Clone, Copy)]
pub(super) struct Token<'t> {
    /// The value, with its gradient.
    pub value: Var<'t>,
    /// What it was.
    pub old: f64,
    /// What it should be.
    pub target: f64,
    /// How far it may move.
    pub clip: Option<f64>,
}

impl<'t> Token<'t> {
    /// The squared error of a number in the value's place.
    pub(super) fn squared(self, number: Var<'t>) -> Var<'t> {
        let error = number - self.target;
        error * error
    }

    /// The value, held within reach of the old one.
    pub(super) fn held(self) -> Var<'t> {
        self.clip.map_or(self.value, |clip| self.value.clamp(self.old - clip, self.old + clip))
    }
}

/// The larger of the squared errors.
pub(super) fn error(token: Token<'_>) -> Var<'_> {
    let plain = token.squared(token.value).term("squared error");
    if token.clip.is_none() {
        return plain;
    }
    let held = token.held().term("clipped value");
    plain.max(token.squared(held).term("clipped squared error"))
}

/// The sum as declared of the losses of each row's tokens; `T` is the width of the batch.
pub(super) fn aggregated<'t>(
    tape: &'t Tape,
    rows: &[Vec<Var<'t>>],
    _: usize,
    options: &Options,
) -> Var<'t> {
    let sum = |row: &Vec<Var<'t>>| tape.sum(row.iter().copied());
    let filled = || rows.iter().filter(|row| !row.is_empty());
    let count = match options.empty_rows {
        EmptyRows::Skip => filled().count(),
        EmptyRows::Count => rows.len(),
    } as f64;
    match options.aggregate {
        Aggregate::TokenMean => tape.sum(filled().map(sum)) / rows.concat().len() as f64,
        Aggregate::TokenSum => tape.sum(filled().map(sum)),
        Aggregate::SeqMeanTokenMean => {
            tape.sum(filled().map(|row| sum(row) / row.len() as f64)) / count
        }
        Aggregate::SeqMeanTokenSum => tape.sum(filled().map(sum)) / count,
        Aggregate::SeqMeanTokenSumNorm => {
            let length = options.norm_length.expect("options were checked");
            tape.sum(filled().map(sum)) / count / f64::from(length)
        }
    }
}

/// The loss of a batch with tokens, made of a token's error and of a sum.
pub(super) fn made_of(
    case: &ValueLossCase,
    options: &Options,
    dtype: Dtype,
    error: impl for<'t> Fn(Token<'t>) -> Var<'t>,
    total: impl for<'t> Fn(&'t Tape, &[Vec<Var<'t>>], usize, &Options) -> Var<'t>,
) -> ValueLossOutput {
    if is_empty(case) {
        return empty(case, options);
    }
    let tape = Tape::new(dtype);
    // Nothing under the mask takes part in any arithmetic.
    let values = tape.leaf(&case.values);
    let token = |at: (usize, usize)| Token {
        value: values[at],
        old: case.old_values[at],
        target: case.returns[at],
        clip: options.clip,
    };
    let rows: Vec<Vec<Token<'_>>> = case
        .mask
        .rows()
        .into_iter()
        .enumerate()
        .map(|(row, mask)| {
            (0..mask.len())
                .filter(|token| mask[*token])
                .map(|column| token((row, column)))
                .collect()
        })
        .collect();
    let losses: Vec<Vec<Var<'_>>> =
        rows.iter().map(|row| row.iter().map(|token| error(*token)).collect()).collect();
    let loss = total(&tape, &losses, case.mask.ncols(), options) * options.factor;
    let tokens = rows.concat();
    let clipped = tokens
        .iter()
        .filter(|token| token.squared(token.held()).value > token.squared(token.value).value);
    let fraction = clipped.count() as f64 / tokens.len() as f64;
    ValueLossOutput {
        loss: arr0(loss.value),
        clip_fraction: Some(arr0(fraction)),
        grad_values: Some(tape.gradient(loss, &values)),
    }
}

/// What a batch without a token gives.
fn empty(case: &ValueLossCase, options: &Options) -> ValueLossOutput {
    assert!(options.empty_mask != EmptyMask::Refuse, "no token counts");
    let loss = if options.empty_mask == EmptyMask::Zero { 0.0 } else { f64::NAN };
    ValueLossOutput {
        loss: arr0(loss),
        clip_fraction: Some(arr0(loss)),
        // NaN has no slope to speak of.
        grad_values: (loss == 0.0).then(|| Array2::zeros(case.mask.dim())),
    }
}

/// The loss, its gradient and the share of clipped tokens, in the arithmetic of the dtype.
pub(super) fn loss(case: &ValueLossCase, options: &Options, dtype: Dtype) -> ValueLossOutput {
    made_of(case, options, dtype, error, aggregated)
}
