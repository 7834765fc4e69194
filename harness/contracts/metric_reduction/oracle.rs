//! The definition of `metric-reduction` in plain f64: statistics of all numbers together.

use ndarray::arr0;

use super::{MetricReductionCase, One, Options, Unit, sets};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// The names of the outputs, in order.
const FIELDS: [&str; 7] = ["mean", "min", "max", "std", "sum", "count", "explained_variance"];

/// What the definition gives.
pub(super) fn metrics(
    case: &MetricReductionCase,
    options: &Options,
    dtype: Dtype,
) -> Vec<Expected> {
    let sets: Vec<_> = case.shards.iter().flat_map(|part| sets(part, options)).collect();
    let numbers = if sets.is_empty() { of_none(options) } else { of(&sets, options, dtype) };
    let expected = |(field, number): (&'static str, Number)| Expected {
        field,
        numbers: arr0(number).into_dyn(),
        terms: 1,
    };
    FIELDS.into_iter().zip(numbers).map(expected).collect()
}

/// No number at all.
fn of_none(options: &Options) -> [Number; 7] {
    let nothing = Number::new(0.0, 0.0);
    let declared = match options.empty_mask {
        EmptyMask::Nan => Number::NAN,
        _ => nothing,
    };
    [declared, declared, declared, declared, nothing, nothing, declared]
}

/// A token, or what becomes of a row.
fn number(set: &[[f64; 2]], which: usize, unit: Unit) -> Scaled {
    let sum = Scaled::sum(set.iter().map(|token| Scaled::exact(token[which])));
    match unit {
        Unit::RowMean => sum / set.len() as f64,
        Unit::Token | Unit::RowSum => sum,
    }
}

fn of(sets: &[Vec<[f64; 2]>], options: &Options, dtype: Dtype) -> [Number; 7] {
    let all = |which| -> Vec<Scaled> {
        sets.iter().map(|set| number(set, which, options.unit)).collect()
    };
    let (values, targets) = (all(0), all(1));
    let moments = Moments::of(&values, options.ddof);
    let sum = Scaled::sum(values.iter().copied());
    // Which of two is the least may be decided by the rounding of either.
    let loosest = values.iter().fold(0.0, |most: f64, x| most.max(x.scale));
    let extreme = |value| Number::new(value, loosest);
    let each = || values.iter().map(|x| x.value);
    let explained = if values.len() <= usize::from(options.ddof) {
        Number::NAN
    } else {
        explained(&values, &targets, sets, options, dtype)
    };
    [
        moments.mean.into(),
        extreme(each().fold(f64::INFINITY, f64::min)),
        extreme(each().fold(f64::NEG_INFINITY, f64::max)),
        moments.deviation(options),
        sum.into(),
        Number::new(values.len() as f64, 0.0),
        explained,
    ]
}

/// Mean and variance of some numbers.
struct Moments {
    mean: Scaled,
    /// The sum of the squared distances from the mean, over n - ddof; 0 where that is 0.
    variance: f64,
    /// What the mean, and with it every distance, may be off.
    lost: f64,
    /// The largest magnitude.
    largest: f64,
    count: f64,
    degrees: f64,
}

impl Moments {
    fn of(numbers: &[Scaled], ddof: u8) -> Moments {
        let count = numbers.len() as f64;
        let degrees = count - f64::from(ddof);
        let mean = Scaled::sum(numbers.iter().copied()) / count;
        // A constant is its own mean: a rounded one would leave a variance of its rounding.
        let constant = numbers.windows(2).all(|pair| pair[0].value == pair[1].value);
        let squares: f64 = numbers.iter().map(|x| (x.value - mean.value).powi(2)).sum();
        coverage::event(&[if constant { "constant numbers" } else { "numbers" }]);
        Moments {
            mean,
            variance: if constant || degrees <= 0.0 { 0.0 } else { squares / degrees },
            lost: mean.scale + numbers.iter().fold(0.0, |most: f64, x| most.max(x.scale)),
            largest: numbers.iter().fold(0.0, |most: f64, x| most.max(x.value.abs())),
            count,
            degrees,
        }
    }

    /// The deviation. Where shards come with means of their own, their distances are off by as
    /// much as the means: so is the deviation, and no more in two passes. In one pass it is off by
    /// the root of a rounded square.
    fn deviation(&self, options: &Options) -> Number {
        if self.degrees <= 0.0 {
            return match options.one {
                One::Nan => Number::NAN,
                One::Zero | One::Refuse => Number::new(0.0, 0.0),
            };
        }
        let deviation = self.variance.sqrt();
        let lost = self.lost * (self.count / self.degrees).sqrt();
        Number::new(deviation, lost + (self.count + 3.0) * deviation)
    }

    /// The variance, as good as the mean of the squares less the square of the mean.
    fn variance(&self) -> Scaled {
        let lost = 3.0 * self.lost * self.largest * self.count / self.degrees;
        Scaled { value: self.variance, scale: lost + (self.count + 3.0) * self.variance }
    }
}

/// A variance that rounding may change by more than this part of it is too small to divide by.
const UNCERTAIN: f64 = 0.1;

/// The part of the format's range beyond which a quotient is not asked for.
const FAR: f64 = 0.25;

fn explained(
    values: &[Scaled],
    targets: &[Scaled],
    sets: &[Vec<[f64; 2]>],
    options: &Options,
    dtype: Dtype,
) -> Number {
    let differences: Vec<Scaled> =
        targets.iter().zip(values).map(|(target, value)| *target - *value).collect();
    let left = Moments::of(&differences, options.ddof).variance();
    let of_targets = Moments::of(targets, options.ddof).variance();
    let exact = is_exactly_constant(targets, sets);
    if exact && options.ev_epsilon == 0.0 {
        return Number::NAN;
    }
    let of_targets = if exact { Scaled::exact(0.0) } else { of_targets };
    let divisor = of_targets + Scaled::rounded(options.ev_epsilon);
    let off = dtype.arithmetic().unit_roundoff() * divisor.scale;
    if off > UNCERTAIN * divisor.value {
        return Number::ANYTHING;
    }
    let explained = Scaled::exact(1.0) - left / divisor;
    let far = explained.value.abs() > FAR * dtype.max();
    if far { Number::ANYTHING } else { explained.into() }
}

/// Whether the targets are one number, and one of which every sum is exact even in f32, in
/// whatever order: then their variance is exactly 0, and otherwise nobody knows.
fn is_exactly_constant(targets: &[Scaled], sets: &[Vec<[f64; 2]>]) -> bool {
    let tokens: usize = sets.iter().map(Vec::len).sum();
    let short = |x: f64| x.abs() <= 64.0 && (x * 8.0).fract() == 0.0;
    tokens <= 64
        && targets.iter().all(|target| target.value == targets[0].value && short(target.value))
        && sets.iter().flatten().all(|token| short(token[1]))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, arr2};

    use super::super::{Shard, Unscored};
    use super::*;

    /// Shards of rows of values and targets; rows may be of different lengths.
    fn case(parts: &[&[&[[f64; 2]]]]) -> MetricReductionCase {
        let part = |rows: &&[&[[f64; 2]]]| {
            let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
            let at = |(row, column): (usize, usize)| rows[row].get(column).copied();
            let shape = (rows.len(), columns);
            Shard {
                values: Array2::from_shape_fn(shape, |place| at(place).map_or(9.0, |x| x[0])),
                targets: Array2::from_shape_fn(shape, |place| at(place).map_or(9.0, |x| x[1])),
                mask: Array2::from_shape_fn(shape, |place| at(place).is_some()),
            }
        };
        MetricReductionCase { shards: parts.iter().map(part).collect() }
    }

    fn values(case: &MetricReductionCase, options: &Options) -> Vec<f64> {
        let value = |expected: &Expected| expected.numbers.first().unwrap().value;
        metrics(case, options, Dtype::F32).iter().map(value).collect()
    }

    #[track_caller]
    fn near(found: &[f64], expected: &[f64]) {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12 || a.is_nan() && b.is_nan();
        assert!(found.iter().zip(expected).all(near), "{found:?} {expected:?}");
    }

    #[test]
    fn one_token_and_three_make_a_half() {
        let case = case(&[&[&[[-1.0, 0.0]]], &[&[[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]]]);
        near(&values(&case, &Options::default()), &[0.5, -1.0, 1.0, 1.0, 2.0, 4.0, 0.6]);
        let options = Options { ev_epsilon: 1e-5, ..Options::default() };
        near(&values(&case, &options)[6..], &[0.600_002_399_985_600_1]);
    }

    #[test]
    fn rows_of_different_length_are_one_number_each() {
        let case = case(&[&[&[[1.0, 0.0], [3.0, 0.0]], &[[5.0, 0.0]]]]);
        let of = |unit| values(&case, &Options { unit, ..Options::default() });
        near(&of(Unit::RowMean)[..6], &[3.5, 2.0, 5.0, 4.5_f64.sqrt(), 7.0, 2.0]);
        near(&of(Unit::RowSum)[..6], &[4.5, 4.0, 5.0, 0.5_f64.sqrt(), 9.0, 2.0]);
        near(&of(Unit::Token)[..6], &[3.0, 1.0, 5.0, 2.0, 9.0, 3.0]);
    }

    #[test]
    fn an_offset_is_explained_and_equal_targets_are_not() {
        let offset = case(&[&[&[[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]]]);
        near(&values(&offset, &Options { ddof: 0, ..Options::default() })[6..], &[1.0]);
        let constant = case(&[&[&[[1.0, 3.0], [2.0, 3.0]]]]);
        near(&values(&constant, &Options::default())[6..], &[f64::NAN]);
        let some = Options { ev_epsilon: 0.5, ..Options::default() };
        near(&values(&constant, &some)[6..], &[0.0]);
    }

    #[test]
    fn a_thing_that_no_sum_holds_exactly_is_left_open_as_a_constant() {
        let number = |target: f64| {
            let case = case(&[&[&[[1.0, target], [2.0, target], [4.0, target]]]]);
            *metrics(&case, &Options::default(), Dtype::F32)[6].numbers.first().unwrap()
        };
        assert!(number(0.1).scale.is_infinite() && number(3.0).scale == 0.0);
    }

    #[test]
    fn one_number_has_the_deviation_that_is_declared() {
        let one = case(&[&[&[[2.0, 1.0]]]]);
        let of = |one_number, ddof| {
            let options = Options { one: one_number, ddof, ..Options::default() };
            values(&one, &options)
        };
        near(&of(One::Nan, 1), &[2.0, 2.0, 2.0, f64::NAN, 2.0, 1.0, f64::NAN]);
        near(&of(One::Zero, 1)[3..4], &[0.0]);
        near(&of(One::Nan, 0)[3..4], &[0.0]);
    }

    #[test]
    fn no_number_at_all_is_as_declared() {
        let empty =
            Shard { values: arr2(&[[5.0]]), targets: arr2(&[[1.0]]), mask: arr2(&[[false]]) };
        let case = MetricReductionCase { shards: vec![empty] };
        near(&values(&case, &Options::default()), &[0.0; 7]);
        let nan = Options { empty_mask: EmptyMask::Nan, ..Options::default() };
        let none = f64::NAN;
        near(&values(&case, &nan), &[none, none, none, none, 0.0, 0.0, none]);
    }

    #[test]
    fn what_could_not_be_scored_is_left_out_or_0() {
        let case = case(&[&[&[[1.0, 0.0], [f64::NAN, 4.0]], &[[f64::NAN, 2.0]]]]);
        let of = |unscored, unit| {
            let options = Options { unscored, unit, ..Options::default() };
            values(&case, &options)
        };
        near(&of(Unscored::Skip, Unit::Token)[..3], &[1.0, 1.0, 1.0]);
        near(&of(Unscored::Skip, Unit::RowMean)[4..6], &[1.0, 1.0]);
        near(&of(Unscored::Zero, Unit::Token)[4..6], &[1.0, 3.0]);
        let rows = of(Unscored::Zero, Unit::RowMean);
        near(&rows[..6], &[0.25, 0.0, 0.5, 0.125_f64.sqrt(), 0.5, 2.0]);
    }
}
