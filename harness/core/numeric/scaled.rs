//! Numbers that carry the scale of their rounding errors, so that an oracle reads like its
//! definition.
//!
//! The standard model of arithmetic has `fl(x ∘ y) = (x ∘ y)(1 + δ)`, `|δ| ≤ u`. To first order in
//! the unit roundoff `u`, a number made of rounded numbers is therefore off by at most `u · scale`:
//!
//! ```text
//! x ± y       scale x + scale y + |x ± y|
//! x · y       |y| · scale x + |x| · scale y + |x · y|
//! x / y       scale x / |y| + |x / y| · scale y / |y| + |x / y|
//! f(x)        |f'(x)| · scale x + 2 |f(x)|          a library's result is within an ulp, 2 u
//! Σ of n      Σ scale + (n − 1) · Σ |term|          in whatever order they are added
//! −x, |x|     scale x
//! ```
//!
//! A scale is a bound on a component that does the same steps. Where components differ in the order
//! of their steps, what they may do worst has to be said: by [`Scaled::sum`], or by a magnitude.
//!
//! Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, 2002: the standard
//! model is (2.4), the sum in any order (4.4); what is done here at the exact values is the running
//! error analysis of section 3.3.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::numeric::tolerance::Number;

/// A number, and what its rounding errors are relative to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    /// The exact value, as well as f64 can say it.
    pub value: f64,
    /// How many unit roundoffs a component's value may be off, to first order.
    pub scale: f64,
}

impl Scaled {
    /// A number that every format holds: an input, a count.
    pub fn exact(value: f64) -> Scaled {
        Scaled { value, scale: 0.0 }
    }

    /// A number that is rounded once: an option, or one operation on exact numbers.
    pub fn rounded(value: f64) -> Scaled {
        Scaled { value, scale: value.abs() }
    }

    /// The sum of some numbers, added in any order.
    pub fn sum(terms: impl IntoIterator<Item = Scaled>) -> Scaled {
        let (mut sum, mut magnitude, mut count) = (Scaled::exact(0.0), 0.0, 0.0_f64);
        for term in terms {
            sum.value += term.value;
            sum.scale += term.scale;
            magnitude += term.value.abs();
            count += 1.0;
        }
        Scaled { scale: sum.scale + passed(magnitude, (count - 1.0).max(0.0)), ..sum }
    }

    /// A library function of this number, that has this value and this slope here.
    pub fn through(self, value: f64, slope: f64) -> Scaled {
        Scaled { value, scale: passed(slope, self.scale) + 2.0 * value.abs() }
    }

    /// e to this power.
    pub fn exp(self) -> Scaled {
        let value = self.value.exp();
        self.through(value, value)
    }

    /// e to this power less 1: the value without cancellation, the scale of a component that
    /// subtracts.
    pub fn exp_m1(self) -> Scaled {
        let power = self.exp();
        Scaled { value: self.value.exp_m1(), scale: power.scale + power.value.max(1.0) }
    }

    /// The natural logarithm.
    pub fn ln(self) -> Scaled {
        self.through(self.value.ln(), 1.0 / self.value)
    }

    /// The cosine.
    pub fn cos(self) -> Scaled {
        self.through(self.value.cos(), self.value.sin())
    }

    /// The magnitude.
    pub fn abs(self) -> Scaled {
        Scaled { value: self.value.abs(), ..self }
    }

    /// This number or an exact one, whichever is the larger. Near the bound a component may be on
    /// its other side, so the scale stays.
    pub fn max(self, least: f64) -> Scaled {
        Scaled { value: self.value.max(least), ..self }
    }
}

/// What a slope makes of an error: of none nothing, and where it is flat nothing, infinities
/// included.
fn passed(slope: f64, scale: f64) -> f64 {
    if slope == 0.0 || scale == 0.0 { 0.0 } else { slope.abs() * scale }
}

impl From<f64> for Scaled {
    fn from(value: f64) -> Scaled {
        Scaled::exact(value)
    }
}

impl From<Scaled> for Number {
    fn from(scaled: Scaled) -> Number {
        Number::new(scaled.value, scaled.scale)
    }
}

impl Neg for Scaled {
    type Output = Scaled;

    fn neg(self) -> Scaled {
        Scaled { value: -self.value, ..self }
    }
}

impl<T: Into<Scaled>> Add<T> for Scaled {
    type Output = Scaled;

    fn add(self, other: T) -> Scaled {
        let other = other.into();
        let value = self.value + other.value;
        Scaled { value, scale: self.scale + other.scale + value.abs() }
    }
}

impl<T: Into<Scaled>> Sub<T> for Scaled {
    type Output = Scaled;

    fn sub(self, other: T) -> Scaled {
        self + -other.into()
    }
}

impl<T: Into<Scaled>> Mul<T> for Scaled {
    type Output = Scaled;

    fn mul(self, other: T) -> Scaled {
        let other = other.into();
        let value = self.value * other.value;
        let scale = passed(other.value, self.scale) + passed(self.value, other.scale);
        Scaled { value, scale: scale + value.abs() }
    }
}

impl<T: Into<Scaled>> Div<T> for Scaled {
    type Output = Scaled;

    fn div(self, other: T) -> Scaled {
        let other = other.into();
        let value = self.value / other.value;
        let scale = (self.scale + passed(value, other.scale)) / other.value.abs();
        Scaled { value, scale: scale + value.abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::place::Dtype;

    const NUMBERS: [f32; 9] = [-7.3, -1.0, -0.1, 0.001, 0.3, 1.0, 1.7, 3.3, 12.9];

    /// By how many unit roundoffs a number in f32 is off.
    fn off(found: f32, exact: Scaled) -> f64 {
        (f64::from(found) - exact.value).abs() / Dtype::F32.unit_roundoff()
    }

    /// That an f32 is off by no more than its scale, and somewhere by a good part of it.
    #[track_caller]
    fn bounds(found: &[(f32, Scaled)]) {
        let share = |(found, exact): &(f32, Scaled)| off(*found, *exact) / exact.scale;
        let shares = found.iter().filter(|(_, exact)| exact.scale > 0.0).map(share);
        let most = shares.fold(0.0, f64::max);
        assert!((0.15..=1.001).contains(&most), "{most}");
    }

    fn pairs() -> impl Iterator<Item = (f32, f32)> {
        NUMBERS.into_iter().flat_map(|x| NUMBERS.into_iter().map(move |y| (x, y)))
    }

    fn exact(x: f32) -> Scaled {
        Scaled::exact(f64::from(x))
    }

    #[test]
    fn one_operation_is_off_by_a_roundoff_of_its_result() {
        assert_eq!(Scaled::exact(3.0) + Scaled::exact(-5.0), Scaled::rounded(-2.0));
        assert_eq!(Scaled::exact(3.0) - 5.0, Scaled::rounded(-2.0));
        assert_eq!(Scaled::exact(3.0) * -5.0, Scaled::rounded(-15.0));
        assert_eq!(Scaled::exact(3.0) / -4.0, Scaled::rounded(-0.75));
        assert_eq!(-Scaled::rounded(2.0), Scaled::rounded(-2.0));
        assert_eq!(Scaled::rounded(-2.0).abs(), Scaled::rounded(2.0));
    }

    #[test]
    fn errors_are_passed_on_by_the_slope_of_each_operation() {
        let (x, y) = (Scaled { value: 6.0, scale: 10.0 }, Scaled { value: -2.0, scale: 3.0 });
        assert_eq!(x + y, Scaled { value: 4.0, scale: 10.0 + 3.0 + 4.0 });
        assert_eq!(x - y, Scaled { value: 8.0, scale: 10.0 + 3.0 + 8.0 });
        assert_eq!(x * y, Scaled { value: -12.0, scale: 20.0 + 18.0 + 12.0 });
        assert_eq!(x / y, Scaled { value: -3.0, scale: 5.0 + 4.5 + 3.0 });
        assert_eq!(x.max(7.0), Scaled { value: 7.0, scale: 10.0 });
        assert_eq!(x.through(-4.0, -0.5), Scaled { value: -4.0, scale: 5.0 + 8.0 });
    }

    #[test]
    fn a_sum_in_any_order_may_round_each_term_with_each_addition() {
        let terms = [5.0, -3.0, 1.0].map(Scaled::exact);
        assert_eq!(Scaled::sum(terms), Scaled { value: 3.0, scale: 18.0 });
        let rounded = [5.0, -3.0, 1.0].map(Scaled::rounded);
        assert_eq!(Scaled::sum(rounded), Scaled { value: 3.0, scale: 27.0 });
        assert_eq!(Scaled::sum([Scaled::rounded(2.0)]), Scaled::rounded(2.0));
        assert_eq!(Scaled::sum([]), Scaled::exact(0.0));
    }

    #[test]
    fn what_cancels_keeps_the_scale_of_what_it_was_made_of() {
        let third = Scaled::exact(1.0) / 3.0;
        let nothing = third - third;
        assert_eq!(nothing, Scaled { value: 0.0, scale: 2.0 / 3.0 });
        let small = Scaled::rounded(1e-9).exp_m1();
        assert_eq!(small.value, 1e-9_f64.exp_m1());
        assert!((3.0..3.1).contains(&small.scale));
    }

    #[test]
    fn a_flat_function_passes_no_error_on_and_an_infinity_no_nan() {
        let nothing = Scaled { value: f64::NEG_INFINITY, scale: f64::INFINITY }.exp();
        assert_eq!(nothing, Scaled::exact(0.0));
        let infinite = Scaled::exact(1e3).exp();
        assert_eq!(infinite, Scaled::rounded(f64::INFINITY));
        assert_eq!(Scaled::sum([infinite * 0.5, infinite / 2.0]), infinite);
        assert_eq!(Scaled::sum([infinite]), infinite);
    }

    #[test]
    fn operations_in_f32_are_off_by_no_more_and_not_by_much_less() {
        bounds(&pairs().map(|(x, y)| (x + y, exact(x) + exact(y))).collect::<Vec<_>>());
        bounds(&pairs().map(|(x, y)| (x * y, exact(x) * exact(y))).collect::<Vec<_>>());
        bounds(&pairs().map(|(x, y)| (x / y, exact(x) / exact(y))).collect::<Vec<_>>());
        bounds(&NUMBERS.map(|x| (x.exp(), exact(x).exp())));
        bounds(&NUMBERS.map(|x| (x.abs().ln(), exact(x).abs().ln())));
        bounds(&NUMBERS.map(|x| (x.exp() - 1.0, exact(x).exp_m1())));
    }

    #[test]
    fn chains_in_f32_are_off_by_no_more_and_not_by_much_less() {
        let chains = pairs().flat_map(|(x, y)| {
            let (a, b) = (exact(x), exact(y));
            [
                ((x / y - 0.25) * x, (a / b - 0.25) * a),
                ((x * y) * (x - y) + x / y, (a * b) * (a - b) + a / b),
                ((x - y) * (x - y) * 0.5, (a - b) * (a - b) * 0.5),
                ((x / 3.0).exp() * y, (a / 3.0).exp() * b),
                ((x / 3.0 * y).cos(), (a / 3.0 * b).cos()),
            ]
        });
        bounds(&chains.collect::<Vec<_>>());
    }

    #[test]
    fn sums_in_f32_are_off_by_no_more_in_either_order() {
        let terms =
            || (1..200_u16).map(|n| 1.0 / f32::from(n) * if n % 3 == 0 { -1.0 } else { 1.0 });
        let sum = Scaled::sum(terms().map(exact));
        let (forwards, backwards) = (terms().sum::<f32>(), terms().rev().sum::<f32>());
        assert!(
            off(forwards, sum) > 0.0 && off(forwards, sum).max(off(backwards, sum)) <= sum.scale
        );
    }
}
