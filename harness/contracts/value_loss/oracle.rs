//! The definition of `value-loss` in plain f64, with its gradient and the scales of both.

use ndarray::{Array2, arr0};

use super::{Errors, Options, ValueLossCase};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// The weight of each token in the loss; `None` where no token counts.
fn weights(case: &ValueLossCase, options: &Options) -> Option<Array2<f64>> {
    options.aggregate.weights(&case.mask, options.empty_rows, options.norm_length)
}

/// The tokens that count, with their weights and errors.
fn tokens<'a>(
    case: &'a ValueLossCase,
    options: &'a Options,
    weights: &'a Array2<f64>,
) -> impl Iterator<Item = ((usize, usize), f64, Errors)> + 'a {
    let kept = case.mask.indexed_iter().filter(|(_, kept)| **kept);
    kept.map(move |(at, _)| (at, options.factor * weights[at], Errors::of(case, options, at)))
}

/// An error of a token, with the magnitude of what was added to make either.
fn scaled(error: f64, errors: Errors) -> Scaled {
    Scaled { value: error, scale: errors.magnitude }
}

/// The loss and the share of clipped tokens.
pub(super) fn loss(case: &ValueLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let expected = |field, number| Expected { field, numbers: arr0(number).into_dyn(), terms: 1 };
    let Some(weights) = weights(case, options) else {
        let [loss, fraction] = match options.empty_mask {
            EmptyMask::Zero => [Number::new(0.0, 0.0); 2],
            EmptyMask::Nan => [Number::NAN, Number::ANYTHING],
            EmptyMask::Refuse | EmptyMask::Avoid => [Number::ANYTHING; 2],
        };
        return vec![expected("loss", loss), expected("clip_fraction", fraction)];
    };
    let mut losses = Vec::new();
    let (mut clipped, mut undecided) = (0.0, 0.0);
    for (_, weight, errors) in tokens(case, options, &weights) {
        let largest = if errors.clips() { errors.clipped } else { errors.plain };
        let error = scaled(largest, errors);
        losses.push(error * error * weight);
        if errors.is_undecided(dtype) {
            coverage::event(&["clipping is undecided"]);
            undecided += 1.0;
        } else if errors.clips() {
            coverage::event(&["clipped"]);
            clipped += 1.0;
        }
    }
    let (loss, count) = (Scaled::sum(losses.iter().copied()), losses.len() as f64);
    // A token whose clipping rounding decides counts half, give or take the other half.
    let fraction = (clipped + 0.5 * undecided) / count;
    let fraction = Number { slack: 0.5 * undecided / count, ..Number::new(fraction, 1.0) };
    vec![expected("loss", loss.into()), expected("clip_fraction", fraction)]
}

/// The gradient: 0 where the clipped error is the larger, as the value no longer moves it.
pub(super) fn gradient(case: &ValueLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let empty = match options.empty_mask {
        EmptyMask::Zero => Number::new(0.0, 0.0),
        EmptyMask::Nan | EmptyMask::Refuse | EmptyMask::Avoid => Number::ANYTHING,
    };
    let weights = weights(case, options);
    let blank = if weights.is_some() { Number::new(0.0, 0.0) } else { empty };
    let mut numbers = Array2::from_elem(case.mask.dim(), blank);
    if let Some(weights) = weights {
        for (at, weight, errors) in tokens(case, options, &weights) {
            let error = if errors.clips() { 0.0 } else { errors.plain };
            let derivative = scaled(error, errors) * 2.0 * weight;
            let undecided = errors.is_undecided(dtype);
            numbers[at] = if undecided { Number::OPEN } else { derivative.into() };
        }
    }
    vec![Expected { field: "grad_values", numbers: numbers.into_dyn(), terms: 1 }]
}

#[cfg(test)]
mod tests {
    use ndarray::arr2;

    use super::*;
    use shakedown_core::numeric::aggregate::Aggregate;
    use shakedown_core::numeric::conventions::EmptyRows;

    fn token(value: f64, old: f64, target: f64) -> ValueLossCase {
        ValueLossCase {
            values: arr2(&[[value]]),
            old_values: arr2(&[[old]]),
            returns: arr2(&[[target]]),
            mask: arr2(&[[true]]),
        }
    }

    /// Loss, share and derivative of a single token.
    fn found(case: &ValueLossCase, options: &Options) -> [f64; 3] {
        let given = loss(case, options, Dtype::F64);
        let slope = gradient(case, options, Dtype::F64);
        let first = |expected: &Expected| expected.numbers.first().unwrap().value;
        [first(&given[0]), first(&given[1]), first(&slope[0])]
    }

    #[test]
    fn the_loss_of_one_token_is_half_the_squared_error() {
        assert_eq!(found(&token(1.0, 0.0, 0.0), &Options::default()), [0.5, 0.0, 1.0]);
        assert_eq!(found(&token(3.0, 9.0, 1.0), &Options::default()), [2.0, 0.0, 2.0]);
    }

    #[test]
    fn the_clipped_error_counts_where_it_is_the_larger() {
        let options = Options { clip: Some(0.5), ..Options::default() };
        // Moved from 0 to 2 where 2 is right: held at 0.5, an error of 1.5.
        assert_eq!(found(&token(2.0, 0.0, 2.0), &options), [1.125, 1.0, 0.0]);
        // Moved the wrong way: the error of the value itself is the larger.
        assert_eq!(found(&token(2.0, 0.0, 0.0), &options), [2.0, 0.0, 2.0]);
        // Not moved far enough to be held.
        assert_eq!(found(&token(0.25, 0.0, 1.0), &options), [0.28125, 0.0, -0.75]);
    }

    #[test]
    fn ends_of_the_range_and_equal_errors_are_open() {
        let options = Options { clip: Some(0.5), ..Options::default() };
        for case in [token(0.5, 0.0, 2.0), token(2.0, 0.0, 1.25)] {
            let slope = gradient(&case, &options, Dtype::F32);
            assert_eq!(slope[0].numbers.first(), Some(&Number::OPEN));
            // It may count as clipped or not.
            let share = loss(&case, &options, Dtype::F32)[1].numbers.first().copied();
            assert_eq!(share, Some(Number { value: 0.5, scale: 1.0, slack: 0.5 }));
        }
    }

    #[test]
    fn losses_are_added_up_as_declared() {
        let case = ValueLossCase {
            values: arr2(&[[1.0, 1.0, 1.0], [2.0, 9.0, 9.0], [9.0, 9.0, 9.0]]),
            old_values: Array2::zeros((3, 3)),
            returns: Array2::zeros((3, 3)),
            mask: arr2(&[[true, true, true], [true, false, false], [false; 3]]),
        };
        let with = |aggregate, empty_rows| {
            let options = Options {
                factor: 1.0,
                aggregate,
                norm_length: Some(2),
                empty_rows,
                ..Options::default()
            };
            loss(&case, &options, Dtype::F64)[0].numbers.first().unwrap().value
        };
        assert_eq!(with(Aggregate::TokenMean, EmptyRows::Skip), 1.75);
        assert_eq!(with(Aggregate::TokenSum, EmptyRows::Skip), 7.0);
        assert_eq!(with(Aggregate::SeqMeanTokenMean, EmptyRows::Skip), 2.5);
        assert_eq!(with(Aggregate::SeqMeanTokenSum, EmptyRows::Skip), 3.5);
        assert_eq!(with(Aggregate::SeqMeanTokenSumNorm, EmptyRows::Skip), 1.75);
        assert!((with(Aggregate::SeqMeanTokenMean, EmptyRows::Count) - 5.0 / 3.0).abs() < 1e-15);
    }
}
