//! The reference implementation of `accumulated-loss`, as a trainer would write it: the counts of
//! the whole step first, then one micro-batch after the other.

use ndarray::{Array2, arr0};

use super::{AccumulatedLossCase, AccumulatedLossOutput, MicroBatchGradient, Options, tokens};
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::value::place::Dtype;

/// The loss and the gradient that the step applies, computed in the arithmetic of the dtype.
///
/// # Panics
/// For a batch without a token, where `empty_mask: refuse` promises it.
pub(super) fn loss(
    case: &AccumulatedLossCase,
    options: &Options,
    dtype: Dtype,
) -> AccumulatedLossOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let tokens = tokens(case);
    if tokens == 0 {
        assert!(options.empty_mask != EmptyMask::Refuse, "no token in any micro-batch");
    }
    let lengths = |mask: &Array2<bool>| -> Vec<usize> {
        mask.rows().into_iter().map(|row| row.iter().filter(|kept| **kept).count()).collect()
    };
    let rows: usize = case
        .micro_batches
        .iter()
        .flat_map(|part| lengths(&part.mask))
        .filter(|length| *length > 0 || options.empty_rows == EmptyRows::Count)
        .count();
    let norm = options.norm_length.map_or(1.0, f64::from);
    let divisor = match options.aggregate {
        Aggregate::TokenSum => 1.0,
        Aggregate::TokenMean => tokens as f64,
        Aggregate::SeqMeanTokenMean | Aggregate::SeqMeanTokenSum => rows as f64,
        Aggregate::SeqMeanTokenSumNorm => f(rows as f64 * norm),
    };
    let mut total = 0.0;
    let mut grad_micro_batches = Vec::new();
    for part in &case.micro_batches {
        let mut gradient = Array2::zeros(part.mask.dim());
        let mut sum = 0.0;
        for (row, length) in lengths(&part.mask).into_iter().enumerate() {
            let own = match options.aggregate {
                Aggregate::SeqMeanTokenMean => length as f64,
                _ => 1.0,
            };
            let mut of_row = 0.0;
            for column in (0..part.mask.ncols()).filter(|column| part.mask[[row, *column]]) {
                of_row = f(of_row + part.token_losses[[row, column]]);
                gradient[[row, column]] = f(f(1.0 / own) / divisor);
            }
            sum = f(sum + if length > 0 { f(of_row / own) } else { 0.0 });
        }
        total = f(total + sum);
        grad_micro_batches.push(MicroBatchGradient { token_losses: gradient });
    }
    let loss = match (tokens, options.empty_mask) {
        (0, EmptyMask::Nan) => f64::NAN,
        (0, _) => 0.0,
        _ => f(total / divisor),
    };
    AccumulatedLossOutput { loss: arr0(loss), grad_micro_batches }
}
