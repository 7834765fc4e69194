//! Reductions under a mask: sums and means of what counts, and one loss from the losses of tokens.

use shakedown::author::aggregate::Aggregate;
use shakedown::author::conventions::{EmptyMask, EmptyRows};
use tch::Tensor;

/// The numbers where the mask is true, 0 elsewhere; differentiable.
///
/// What is masked is replaced, not multiplied by 0: a NaN or an infinity there is gone, and before
/// any arithmetic, so that no derivative of it is made either.
///
/// # Shapes
/// Numbers and mask of one shape, or of shapes that broadcast.
pub fn under(mask: &Tensor, numbers: &Tensor) -> Tensor {
    numbers.where_self(mask, &numbers.zeros_like())
}

/// The mean of the numbers that count, as `empty` says where none does; differentiable.
///
/// # Shapes
/// Numbers and mask `[N, T]`, the result a scalar.
///
/// # Errors
/// Panics without a token with [`EmptyMask::Refuse`].
pub fn mean(numbers: &Tensor, mask: &Tensor, empty: EmptyMask) -> Tensor {
    let tokens = mask.sum(numbers.kind());
    quotient(&under(mask, numbers).sum(None), &tokens, &tokens, empty)
}

/// How the losses of tokens become the loss of a batch: four options that every loss has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// What is added up, and what it is divided by.
    pub aggregate: Aggregate,
    /// In tokens; the constant of `seq-mean-token-sum-norm`.
    pub norm_length: Option<u32>,
    /// Whether a row without a token is a row.
    pub empty_rows: EmptyRows,
    /// What a batch without a token gives.
    pub empty_mask: EmptyMask,
}

impl Reduction {
    /// One loss from the losses of tokens; differentiable.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: losses and mask `[N, T]`, the result a scalar.
    ///
    /// # Errors
    /// Panics without a token with [`EmptyMask::Refuse`], and where `norm_length` is missing.
    ///
    /// # Source
    /// verl `agg_loss`, for the names; TRL and Dr. GRPO (Liu et al. 2025) divide by a constant
    /// length.
    pub fn of(&self, losses: &Tensor, mask: &Tensor) -> Tensor {
        self.part(losses, mask).whole(self)
    }

    /// What one micro-batch contributes to the loss of a batch.
    ///
    /// # Shapes
    /// As [`Reduction::of`]; `N` and `T` may differ from one micro-batch to the next.
    pub fn part(&self, losses: &Tensor, mask: &Tensor) -> Part {
        let losses = under(mask, losses);
        let lengths = mask.sum_dim_intlist(1, false, losses.kind());
        let sums = losses.sum_dim_intlist(1, false, None);
        let rows = match self.empty_rows {
            EmptyRows::Skip => lengths.gt(0.0).sum(losses.kind()),
            EmptyRows::Count => lengths.ones_like().sum(None),
        };
        let sum = match self.aggregate {
            Aggregate::SeqMeanTokenMean => sums / lengths.clamp_min(1.0),
            _ => sums,
        };
        Part { sum: sum.sum(None), tokens: lengths.sum(None), rows }
    }
}

/// What a micro-batch adds to numerator and denominator of a loss: these add up over micro-batches
/// of any size, and means do not.
#[derive(Debug)]
pub struct Part {
    /// The losses of tokens, or the means of rows, added up.
    sum: Tensor,
    /// How many tokens count.
    tokens: Tensor,
    /// How many rows count.
    rows: Tensor,
}

impl Part {
    /// Two micro-batches as one.
    pub fn and(self, other: Part) -> Part {
        Part {
            sum: self.sum + other.sum,
            tokens: self.tokens + other.tokens,
            rows: self.rows + other.rows,
        }
    }

    /// The loss of the batch that all micro-batches make up.
    pub fn whole(self, reduction: &Reduction) -> Tensor {
        let denominator = match reduction.aggregate {
            Aggregate::TokenMean => self.tokens.shallow_clone(),
            Aggregate::TokenSum => self.tokens.ones_like(),
            Aggregate::SeqMeanTokenMean | Aggregate::SeqMeanTokenSum => self.rows,
            Aggregate::SeqMeanTokenSumNorm => {
                let length = reduction.norm_length.expect("`norm_length` is required");
                self.rows * f64::from(length)
            }
        };
        quotient(&self.sum, &denominator, &self.tokens, reduction.empty_mask)
    }
}

/// The quotient, and what `empty` says where there is no token. Every denominator of a batch with
/// a token is at least 1.
fn quotient(sum: &Tensor, denominator: &Tensor, tokens: &Tensor, empty: EmptyMask) -> Tensor {
    if empty == EmptyMask::Refuse {
        assert!(tokens.double_value(&[]) > 0.0, "no token counts in this batch");
    }
    let quotient = sum / denominator.clamp_min(1.0);
    match empty {
        EmptyMask::Nan => quotient.where_scalarother(&tokens.gt(0.0), f64::NAN),
        EmptyMask::Zero | EmptyMask::Refuse | EmptyMask::Avoid => quotient,
    }
}
