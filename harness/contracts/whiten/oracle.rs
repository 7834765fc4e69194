//! The definition of `whiten` in plain f64, with the scale of every number.

use ndarray::Array2;

use super::{Options, WhitenCase, is_few, protected, sets, statistics};
use shakedown_core::contract::options::RowInfluence;
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::outside;
use shakedown_core::numeric::tolerance::{Expected, Number, summed};

/// What the definition gives.
///
/// With m the largest value of a set, c what a sum of its tokens loses and s the protected
/// deviation, the mean is off by u·c·m. The variance is off by u·c·m² where it is the mean of the
/// squares less the square of the mean, which is more than a second pass loses, and its root by
/// u·c·m²/s.
pub(super) fn whitened(case: &WhitenCase, options: &Options) -> Vec<Expected> {
    let mut numbers = Array2::from_elem(case.values.dim(), outside(options.masked_output));
    for (index, set) in sets(case, options).into_iter().enumerate() {
        if is_few(set.len(), options) {
            // NaN times a mask is NaN: a set without a deviation says nothing of masked tokens.
            if options.empty_mask == EmptyMask::Nan {
                match options.rows {
                    RowInfluence::Batch => numbers.fill(Number::ANYTHING),
                    RowInfluence::Independent => numbers.row_mut(index).fill(Number::ANYTHING),
                }
            }
            for at in set {
                numbers[at] = too_few(case.values[at], options);
            }
            continue;
        }
        let values: Vec<f64> = set.iter().map(|at| case.values[*at]).collect();
        let (mean, variance) = statistics(&values, options.ddof);
        let divisor = protected(variance, options);
        let largest = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        let lost = summed(values.len()) * largest;
        let mean = Scaled { value: mean, scale: lost };
        let divisor = Scaled { value: divisor, scale: lost * largest / divisor };
        for (at, value) in set.into_iter().zip(&values) {
            let shifted = (Scaled::rounded(*value) - mean) / divisor;
            let whitened = if options.shift_mean { shifted } else { shifted + mean };
            numbers[at] = whitened.into();
        }
    }
    vec![Expected { field: "whitened", numbers: numbers.into_dyn(), terms: case.mask.len() }]
}

/// A token of a set that has too few for a deviation.
fn too_few(value: f64, options: &Options) -> Number {
    match options.empty_mask {
        EmptyMask::Zero if options.shift_mean => Number::new(0.0, 0.0),
        EmptyMask::Zero => Number::new(value, value.abs()),
        EmptyMask::Nan => Number::NAN,
        EmptyMask::Refuse | EmptyMask::Avoid => Number::ANYTHING,
    }
}

#[cfg(test)]
mod tests {
    use ndarray::arr2;

    use super::*;

    fn values(values: &[[f64; 2]], mask: &[[bool; 2]], options: &Options) -> Vec<f64> {
        let case = WhitenCase { values: arr2(values), mask: arr2(mask) };
        whitened(&case, options)[0].numbers.iter().map(|number| number.value).collect()
    }

    fn near(found: &[f64], expected: &[f64]) {
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(found.iter().zip(expected).all(close), "{found:?} {expected:?}");
    }

    #[test]
    fn two_values_are_one_over_the_root_of_two_apart_from_0() {
        let options = Options { epsilon: 0.0, ..Options::default() };
        let half = 0.5_f64.sqrt();
        let mask = [[true, true], [false, false]];
        near(&values(&[[3.0, 8.0], [9.0, 9.0]], &mask, &options), &[-half, half, 0.0, 0.0]);
        let biased = Options { ddof: 0, ..options };
        near(&values(&[[3.0, 8.0], [9.0, 9.0]], &mask, &biased), &[-1.0, 1.0, 0.0, 0.0]);
        let shifted = Options { shift_mean: false, ..biased };
        near(&values(&[[3.0, 8.0], [9.0, 9.0]], &mask, &shifted), &[4.5, 6.5, 0.0, 0.0]);
    }

    #[test]
    fn rows_by_themselves_have_statistics_of_their_own() {
        let all = [[true, true], [true, true]];
        let options = Options { ddof: 0, epsilon: 0.0, ..Options::default() };
        let root = 5.0_f64.sqrt();
        let batch = [-3.0 / root, 1.0 / root, -1.0 / root, 3.0 / root];
        near(&values(&[[0.0, 4.0], [2.0, 6.0]], &all, &options), &batch);
        let options = Options { rows: RowInfluence::Independent, ..options };
        near(&values(&[[0.0, 4.0], [2.0, 6.0]], &all, &options), &[-1.0, 1.0, -1.0, 1.0]);
    }

    #[test]
    fn one_token_gives_what_is_declared() {
        let one = [[true, false], [false, false]];
        let found = |options: Options| values(&[[7.0, 1.0], [1.0, 1.0]], &one, &options)[0];
        assert_eq!(found(Options::default()), 0.0);
        assert_eq!(found(Options { shift_mean: false, ..Options::default() }), 7.0);
        assert!(found(Options { empty_mask: EmptyMask::Nan, ..Options::default() }).is_nan());
    }

    #[test]
    fn the_variance_is_that_over_itself_and_epsilon() {
        let options = Options { epsilon: 0.5, ..Options::default() };
        let mask = [[true, true], [false, false]];
        near(&values(&[[0.0, 1.0], [0.0, 0.0]], &mask, &options), &[-0.5, 0.5, 0.0, 0.0]);
    }
}
