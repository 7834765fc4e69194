//! Outcomes: what checking one case said, and the comparisons that say it.

use std::fmt::Display;

use ndarray::{Array, ArrayD, ArrayRef, ArrayViewD, Dimension, IxDyn};

use crate::contract::cause::{Cause, Found};
use crate::numeric::tolerance::apart;
use crate::value::record::index;
use crate::value::text::pair;

/// What checking one case said: it holds, or why checking stopped.
pub type Outcome = Result<(), Stop>;

/// Why a check stopped.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The case is none of those that the invariant speaks about.
    Vacuous,
    /// The invariant is broken: what was found, both numbers in it, and in what way.
    Broken(Found),
    /// A call failed. The probe keeps the case and the failure for the laws about totality and
    /// form.
    Failed,
}

impl Stop {
    /// Breaks the invariant by a number.
    pub fn number(message: String, found: f64) -> Stop {
        Stop::Broken(Found::new(message, Cause::of_number(found)))
    }
}

/// Breaks the invariant with a formatted message.
#[doc(hidden)]
#[macro_export]
macro_rules! __broken {
    ($($message:tt)+) => {
        return Err($crate::author::Stop::Broken(format!($($message)+).into()))
    };
}
#[doc(inline)]
pub use __broken as broken;

/// Breaks the invariant where a number is further from another than allowed: `the loss is 2,
/// expected 1 ± 3.6e-6`. NaN is near nothing, not even NaN.
///
/// # Errors
/// The invariant is broken.
pub fn near(what: impl Display, found: f64, expected: f64, allowed: f64) -> Outcome {
    if apart(found, expected, allowed) {
        let [text, expected] = pair(found, expected);
        let message = format!("{what} is {text}, expected {expected} ± {allowed:.1e}");
        return Err(Stop::number(message, found));
    }
    Ok(())
}

/// The same for arrays, at the first place where they are too far apart: `returns[1, 0] is 2,
/// expected 1 ± 3.6e-6`.
///
/// # Errors
/// The invariant is broken.
pub fn close<D: Dimension, A: Dimension>(
    what: impl Display,
    found: &Array<f64, D>,
    expected: &Array<f64, D>,
    allowed: &Array<f64, A>,
) -> Outcome {
    all_close(&what, "expected", [found.view().into_dyn(), expected.view().into_dyn()], allowed)
}

/// The same for what another case must not change: `with other pads, returns[1, 0] is 2, before
/// it was 1 ± 3.6e-6`.
///
/// # Errors
/// The invariant is broken.
pub fn unchanged<D: Dimension, A: Dimension>(
    what: impl Display,
    after: &Array<f64, D>,
    before: &Array<f64, D>,
    allowed: &Array<f64, A>,
) -> Outcome {
    all_close(&what, "before it was", [after.view().into_dyn(), before.view().into_dyn()], allowed)
}

fn all_close<A: Dimension>(
    what: &dyn Display,
    expectation: &str,
    [found, expected]: [ArrayViewD<'_, f64>; 2],
    allowed: &Array<f64, A>,
) -> Outcome {
    assert!(found.shape() == expected.shape() && found.shape() == allowed.shape());
    for (((at, found), expected), allowed) in found.indexed_iter().zip(expected).zip(allowed) {
        if apart(*found, *expected, *allowed) {
            let ([text, expected], at) = (pair(*found, *expected), index(&at));
            let message = format!("{what}{at} is {text}, {expectation} {expected} ± {allowed:.1e}");
            return Err(Stop::number(message, *found));
        }
    }
    Ok(())
}

/// How far numbers may be apart where some of them are checked: infinitely far elsewhere.
pub fn only<const N: usize>(
    allowed: ArrayD<f64>,
    checked: impl Fn([usize; N]) -> bool,
) -> ArrayD<f64> {
    let mut allowed = allowed;
    for (at, allowed) in allowed.indexed_iter_mut() {
        let at = std::array::from_fn(|axis| at[axis]);
        *allowed = if checked(at) { *allowed } else { f64::INFINITY };
    }
    allowed
}

/// Two numbers at the same place that are further apart than allowed.
pub struct Difference {
    /// `[1, 0]`.
    pub index: String,
    /// The first number.
    pub left: f64,
    /// The second number.
    pub right: f64,
    /// How far apart they may be.
    pub allowed: f64,
}

/// The first place where two arrays differ by more than allowed; infinitely far is never checked,
/// and two NaN are the same.
pub fn difference(
    left: &ArrayRef<f64, IxDyn>,
    right: &ArrayRef<f64, IxDyn>,
    allowed: &ArrayRef<f64, IxDyn>,
) -> Option<Difference> {
    let places = left.indexed_iter().zip(right).zip(allowed);
    let differ = |left: f64, right: f64, allowed: f64| {
        apart(left, right, allowed) && !(left.is_nan() && right.is_nan())
    };
    places.into_iter().find(|(((_, left), right), allowed)| differ(**left, **right, **allowed)).map(
        |(((at, left), right), allowed)| Difference {
            index: index(&at),
            left: *left,
            right: *right,
            allowed: *allowed,
        },
    )
}

#[cfg(test)]
mod tests {
    use ndarray::{arr0, arr2};

    use super::*;

    fn said(outcome: Outcome) -> String {
        match outcome {
            Err(Stop::Broken(found)) => found.message,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_first_place_too_far_apart_is_named_with_both_numbers() {
        let (found, expected) = (arr2(&[[1.0, 2.0], [4.0, 5.0]]), arr2(&[[1.0, 2.5], [3.0, 5.0]]));
        let allowed = arr2(&[[0.0, 0.5], [0.5, 0.0]]).into_dyn();
        let what = "with other pads, returns";
        assert_eq!(
            said(close(what, &found, &expected, &allowed)),
            "with other pads, returns[1, 0] is 4, expected 3 ± 5.0e-1"
        );
        assert_eq!(
            said(unchanged(what, &found, &expected, &allowed)),
            "with other pads, returns[1, 0] is 4, before it was 3 ± 5.0e-1"
        );
        assert_eq!(
            said(close("loss", &arr0(1.0), &arr0(0.0), &arr0(0.5))),
            "loss is 1, expected 0 ± 5.0e-1"
        );
    }

    #[test]
    fn nan_is_near_nothing_where_it_is_checked() {
        assert_eq!(said(near("loss", f64::NAN, 0.0, 1.0)), "loss is NaN, expected 0 ± 1.0e0");
        assert!(near("loss", f64::NAN, f64::NAN, 1.0).is_err());
        assert_eq!(near("loss", f64::NAN, 0.0, f64::INFINITY), Ok(()));
    }

    #[test]
    fn the_number_tells_the_cause_and_not_the_words_around_it() {
        let cause = |outcome| match outcome {
            Err(Stop::Broken(found)) => Found::cause(&found),
            other => panic!("{other:?}"),
        };
        let what = "raised NaN by inf, loss";
        assert_eq!(cause(near(what, 2.0, 1.0, 0.5)), Cause::Differs);
        assert_eq!(cause(near("loss", f64::NAN, 1.0, 0.5)), Cause::NotANumber);
        assert_eq!(cause(near("loss", f64::NEG_INFINITY, 1.0, 0.5)), Cause::Infinite);
        let [found, expected, allowed] = [f64::INFINITY, f64::NAN, 0.5].map(arr0);
        assert_eq!(cause(unchanged(what, &found, &expected, &allowed)), Cause::Infinite);
        let (expected, allowed) = (arr0(f64::NAN), arr0(0.5));
        assert_eq!(cause(close(what, &arr0(2.0), &expected, &allowed)), Cause::Differs);
    }

    #[test]
    fn numbers_that_are_not_checked_may_be_anything() {
        let (found, expected) = (arr2(&[[1.0, 2.0]]), arr2(&[[0.0, 2.0]]));
        let allowed = || ArrayD::zeros(vec![1, 2]);
        let second = only(allowed(), |[_, column]| column == 1);
        assert_eq!(close("returns", &found, &expected, &second), Ok(()));
        let first = only(allowed(), |[_, column]| column == 0);
        assert!(close("returns", &found, &expected, &first).is_err());
    }
}
