//! The definition of `accumulated-loss` in plain f64: the weights of one whole batch.

use ndarray::{Array2, arr0};

use super::{AccumulatedLossCase, Options, gradient_field, joined, parted};
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};

/// The weight of each token, micro-batch by micro-batch; `None` where no token counts.
fn weights(case: &AccumulatedLossCase, options: &Options) -> Option<Vec<Array2<f64>>> {
    let mask = joined(case).mask;
    let weights = options.aggregate.weights(&mask, options.empty_rows, options.norm_length)?;
    Some(parted(case, &weights))
}

/// What the definition gives: Σ weight · token loss.
pub(super) fn loss(case: &AccumulatedLossCase, options: &Options) -> Vec<Expected> {
    let number = match weights(case, options) {
        None if options.empty_mask == EmptyMask::Nan => Number::NAN,
        None => Number::new(0.0, 0.0),
        Some(weights) => {
            let mut terms = Vec::new();
            for (part, weights) in case.micro_batches.iter().zip(&weights) {
                for ((loss, weight), kept) in part.token_losses.iter().zip(weights).zip(&part.mask)
                {
                    if *kept {
                        terms.push(Scaled::rounded(*weight) * *loss);
                    }
                }
            }
            Scaled::sum(terms).into()
        }
    };
    vec![Expected { field: "loss", numbers: arr0(number).into_dyn(), terms: 1 }]
}

/// The gradient: the weights. A denominator of so many tokens is exact; the weight is one division
/// or two, and a product where a micro-batch was normalised on its own and weighted afterwards.
pub(super) fn gradient(case: &AccumulatedLossCase, options: &Options) -> Vec<Expected> {
    let weights = weights(case, options);
    let part = |index: usize| match &weights {
        Some(weights) => weights[index].mapv(|weight| Number::new(weight, 2.0 * weight)),
        None => {
            let number = match options.empty_mask {
                EmptyMask::Nan => Number::ANYTHING,
                _ => Number::new(0.0, 0.0),
            };
            case.micro_batches[index].token_losses.mapv(|_| number)
        }
    };
    (0..case.micro_batches.len())
        .map(|index| Expected {
            field: gradient_field(index),
            numbers: part(index).into_dyn(),
            terms: 1,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use ndarray::arr2;

    use super::super::MicroBatch;
    use super::*;
    use shakedown_core::numeric::aggregate::Aggregate;
    use shakedown_core::numeric::conventions::EmptyRows;

    fn case(parts: &[&[&[f64]]]) -> AccumulatedLossCase {
        let part = |rows: &&[&[f64]]| {
            let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
            let at = |row: usize, column: usize| rows[row].get(column).copied();
            MicroBatch {
                token_losses: Array2::from_shape_fn((rows.len(), columns), |(r, c)| {
                    at(r, c).unwrap_or(7.0)
                }),
                mask: Array2::from_shape_fn((rows.len(), columns), |(r, c)| at(r, c).is_some()),
            }
        };
        AccumulatedLossCase { micro_batches: parts.iter().map(part).collect() }
    }

    fn value(case: &AccumulatedLossCase, options: &Options) -> f64 {
        loss(case, options)[0].numbers.first().unwrap().value
    }

    fn with(aggregate: Aggregate, empty_rows: EmptyRows) -> Options {
        Options { aggregate, empty_rows, norm_length: Some(10), ..Options::default() }
    }

    #[test]
    fn one_token_and_three_make_a_half() {
        let case = case(&[&[&[-1.0]], &[&[1.0, 1.0, 1.0]]]);
        assert_eq!(value(&case, &Options::default()), 0.5);
        let [first, second] = &gradient(&case, &Options::default())[..] else { panic!() };
        assert_eq!((first.field, second.field), (gradient_field(0), gradient_field(1)));
        assert!(first.numbers.iter().chain(&second.numbers).all(|number| number.value == 0.25));
        for (aggregate, expected) in [
            (Aggregate::SeqMeanTokenMean, 0.0),
            (Aggregate::SeqMeanTokenSum, 1.0),
            (Aggregate::SeqMeanTokenSumNorm, 0.1),
            (Aggregate::TokenSum, 2.0),
        ] {
            let found = value(&case, &with(aggregate, EmptyRows::Skip));
            assert!((found - expected).abs() < 1e-15, "{aggregate:?}: {found}");
        }
    }

    #[test]
    fn a_constant_loss_keeps_its_value_in_means_and_grows_with_the_rows_in_sums() {
        let case = case(&[&[&[3.0; 4], &[3.0]], &[&[3.0, 3.0]], &[&[3.0; 5], &[3.0; 2], &[3.0]]]);
        for (aggregate, expected) in [
            (Aggregate::TokenMean, 3.0),
            (Aggregate::SeqMeanTokenMean, 3.0),
            (Aggregate::SeqMeanTokenSum, 3.0 * 15.0 / 6.0),
        ] {
            assert!((value(&case, &with(aggregate, EmptyRows::Skip)) - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn an_empty_micro_batch_counts_by_its_rows_alone() {
        let mut case = case(&[&[&[4.0, 4.0]], &[&[2.0]]]);
        let empty =
            MicroBatch { token_losses: arr2(&[[9.0], [9.0]]), mask: arr2(&[[false], [false]]) };
        case.micro_batches.insert(1, empty);
        assert!((value(&case, &Options::default()) - 10.0 / 3.0).abs() < 1e-15);
        assert_eq!(value(&case, &with(Aggregate::SeqMeanTokenMean, EmptyRows::Skip)), 3.0);
        assert_eq!(value(&case, &with(Aggregate::SeqMeanTokenMean, EmptyRows::Count)), 1.5);
    }

    #[test]
    fn a_batch_without_a_token_is_as_declared() {
        let empty = MicroBatch { token_losses: arr2(&[[1.0]]), mask: arr2(&[[false]]) };
        let case = AccumulatedLossCase { micro_batches: vec![empty] };
        assert_eq!(value(&case, &Options::default()), 0.0);
        let nan = Options { empty_mask: EmptyMask::Nan, ..Options::default() };
        assert!(value(&case, &nan).is_nan());
    }
}
