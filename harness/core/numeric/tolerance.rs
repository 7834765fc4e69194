//! How close is close: the only place where two numbers are compared.
//!
//! An oracle gives each value with its *scale*, the magnitude of the terms that were added or
//! cancelled to make it, and the bound follows from the formats alone:
//!
//! ```text
//! SAFETY · ( u(arithmetic) · scale · (1 + log2 terms)  +  u(dtype) · (1 + |value|) )
//! ```
//!
//! where `u` is the unit roundoff and the arithmetic of half formats is f32. NaN passes only where
//! it is what the definition gives.

use ndarray::ArrayD;

use crate::numeric::conventions::MaskedOutput;
use crate::value::place::Dtype;

/// How many times the first-order rounding error is allowed. A choice, not a measurement: with it
/// the references and the library functions of `targets/python` pass, and planted errors do not.
pub const SAFETY: f64 = 4.0;

/// A number that an oracle expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// The exact value, as well as f64 can say it.
    pub value: f64,
    /// The magnitude of the terms that were added or cancelled to make it. Infinite where the
    /// contract leaves the value open: then anything passes.
    pub scale: f64,
    /// A distance that the contract allows besides rounding; 0 nearly always.
    pub slack: f64,
}

impl Number {
    /// A value made of terms of magnitude `scale`.
    pub fn new(value: f64, scale: f64) -> Number {
        Number { value, scale, slack: 0.0 }
    }

    /// A finite value that the contract leaves open.
    pub const OPEN: Number = Number { value: 0.0, scale: f64::INFINITY, slack: 0.0 };

    /// A value that the contract leaves open, NaN and infinities included.
    pub const ANYTHING: Number = Number { value: f64::NAN, scale: f64::INFINITY, slack: 0.0 };

    /// NaN, promised.
    pub const NAN: Number = Number { value: f64::NAN, scale: 0.0, slack: 0.0 };
}

/// The factor that the scale of a sum of `count` terms needs besides `terms`: one after the other
/// they may lose a unit roundoff each, and the bound allows for 1 + log2 of them.
pub fn summed(count: usize) -> f64 {
    let count = count.max(1) as f64;
    count / (1.0 + count.log2())
}

/// The discounted sum from each term on, `Σ factor^d · term`: what is d steps ahead passes through
/// d products and sums, which round it `each` times a step and once more. Terms come with their
/// magnitude. One pass from the end, so that a row as long as training has them takes no T² steps.
pub fn discounted(terms: &[(f64, f64)], factor: f64, each: f64) -> Vec<Number> {
    let (mut value, mut magnitude, mut scale) = (0.0, 0.0, 0.0);
    let from_the_end = terms.iter().rev().map(|(term, size)| {
        value = term + factor * value;
        scale = size + factor * (scale + each * magnitude);
        magnitude = size + factor * magnitude;
        Number::new(value, scale)
    });
    let mut sums: Vec<Number> = from_the_end.collect();
    sums.reverse();
    sums
}

/// Whether two numbers are further apart than allowed. NaN always is; nothing is further apart
/// than infinity, which stands for a number that the contract leaves open.
#[inline]
pub fn apart(found: f64, expected: f64, allowed: f64) -> bool {
    let near = found == expected || (found - expected).abs() <= allowed;
    allowed != f64::INFINITY && !near
}

/// What an oracle expects of one output field.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The output field.
    pub field: &'static str,
    /// Its values, each with its scale.
    pub numbers: ArrayD<Number>,
    /// How many terms go into one value; a factor `1 + log2 terms` of the bound.
    pub terms: usize,
}

/// What an oracle expects of the texts of one output field.
#[derive(Clone, Debug)]
pub struct ExpectedTexts {
    /// The output field.
    pub field: &'static str,
    /// What it expects of each.
    pub texts: Vec<Wanted>,
}

/// What an oracle expects of one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One of these; the first is the one to show. `None` is null.
    OneOf(Vec<Option<String>>),
    /// These pieces in a row, each with or without the white space around it.
    Pieces(Vec<String>),
    /// The contract leaves it open.
    Open,
}

impl Wanted {
    /// This text and no other.
    pub fn text(text: impl Into<String>) -> Wanted {
        Wanted::OneOf(vec![Some(text.into())])
    }

    /// Whether a text is expected.
    pub fn accepts(&self, found: Option<&str>) -> bool {
        match self {
            Wanted::OneOf(texts) => texts.iter().any(|text| text.as_deref() == found),
            Wanted::Pieces(pieces) => found.is_some_and(|found| made_of(found, pieces)),
            Wanted::Open => true,
        }
    }

    /// Whether any text is.
    pub fn is_open(&self) -> bool {
        *self == Wanted::Open
    }

    /// The text to show as the expected one.
    pub fn shown(&self) -> Option<String> {
        match self {
            Wanted::OneOf(texts) => texts.first().cloned().flatten(),
            Wanted::Pieces(pieces) => Some(pieces.concat()),
            Wanted::Open => None,
        }
    }
}

/// White space as any language trims it: Python's `strip` takes the separators of ASCII too.
pub fn is_white(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Whether a text is these pieces in a row, each with or without the white space around it.
fn made_of(text: &str, pieces: &[String]) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return text.is_empty() };
    let core = piece.trim_matches(is_white);
    let lead = &piece[..piece.len() - piece.trim_start_matches(is_white).len()];
    let trail = match core.is_empty() {
        true => "",
        false => &piece[lead.len() + core.len()..],
    };
    let cuts = |text: &str| {
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        ends.collect::<Vec<usize>>()
    };
    cuts(lead).into_iter().any(|from| {
        let Some(text) = text.strip_prefix(&lead[from..]) else { return false };
        let Some(text) = text.strip_prefix(core) else { return false };
        cuts(trail)
            .into_iter()
            .any(|to| text.strip_prefix(&trail[..to]).is_some_and(|text| made_of(text, rest)))
    })
}

/// The tolerance of one component: its dtype, and the factor by which its manifest widens it.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// The format of inputs and outputs.
    pub dtype: Dtype,
    /// 1 unless the user widens it, in the open.
    pub factor: f64,
}

impl Tolerance {
    /// That of whole numbers, which are right or wrong at every dtype.
    pub const WHOLE: Tolerance = Tolerance { dtype: Dtype::F64, factor: 1.0 };

    /// The largest allowed distance from `number`, a value made of `terms` terms.
    #[inline]
    pub fn bound(self, number: Number, terms: usize) -> f64 {
        let arithmetic = self.dtype.arithmetic().unit_roundoff();
        let depth = 1.0 + (terms.max(1) as f64).log2();
        if number.scale.is_infinite() {
            return f64::INFINITY;
        }
        let storage = self.dtype.unit_roundoff() * (1.0 + number.value.abs());
        self.factor * SAFETY * (arithmetic * number.scale * depth + storage) + number.slack
    }

    /// Whether `found` is what the oracle expects.
    #[inline]
    pub fn accepts(self, found: f64, expected: Number, terms: usize) -> bool {
        if expected.value.is_nan() && expected.scale.is_finite() {
            return found.is_nan();
        }
        let stored = self.stored(expected.value);
        if stored.is_infinite() && expected.scale.is_finite() {
            // Infinity is exact; at the edge of a format rounding decides whether it is reached.
            let distance = (found - expected.value).abs();
            let edge = expected.value.is_finite() && distance <= self.bound(expected, terms);
            return found == stored || edge;
        }
        !apart(found, stored, self.bound(Number { value: stored, ..expected }, terms))
    }

    /// The value as its format holds it: infinite beyond the largest finite number.
    fn stored(self, value: f64) -> f64 {
        if value.is_finite() && value.abs() > self.dtype.max() {
            self.dtype.round(value)
        } else {
            value
        }
    }
}

/// What is expected at a masked position of an output.
pub fn outside(output: MaskedOutput) -> Number {
    match output {
        MaskedOutput::Zero => Number::new(0.0, 0.0),
        MaskedOutput::Any => Number::ANYTHING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Tolerance = Tolerance { dtype: Dtype::F32, factor: 1.0 };

    #[test]
    fn nan_passes_only_where_it_is_promised_or_anything_is() {
        assert!(F32.accepts(f64::NAN, Number::NAN, 1) && !F32.accepts(0.0, Number::NAN, 1));
        assert!(F32.accepts(f64::NAN, Number::ANYTHING, 1));
        assert!(!F32.accepts(f64::NAN, Number::new(0.0, 1.0), 1));
        assert!(!F32.accepts(f64::INFINITY, Number::new(1.0, 1.0), 1));
        assert!(F32.accepts(f64::NEG_INFINITY, Number::new(f64::NEG_INFINITY, 1.0), 1));
        for found in [f64::NAN, 0.0, f64::INFINITY] {
            assert!(!F32.accepts(found, Number::new(f64::NEG_INFINITY, 1.0), 1), "{found}");
        }
    }

    #[test]
    fn discounted_sums_are_the_sums_of_their_definition() {
        let terms: Vec<(f64, f64)> =
            [1.0, -2.0, 0.0, 0.5, 3.0].map(|term: f64| (term, 1.0 + term.abs())).to_vec();
        for (factor, each) in [(1.0, 1.0), (0.9, 2.0), (0.5, 1.0), (0.0, 2.0)] {
            for (step, sum) in discounted(&terms, factor, each).iter().enumerate() {
                let (mut value, mut scale) = (0.0, 0.0);
                for (ahead, (term, size)) in terms[step..].iter().enumerate() {
                    let weight: f64 = f64::powi(factor, ahead as i32);
                    value += weight * term;
                    scale += (1.0 + each * ahead as f64) * weight * size;
                }
                assert!((sum.value - value).abs() < 1e-14, "{factor} {step}");
                assert!((sum.scale - scale).abs() < 1e-13, "{factor} {step}");
            }
        }
    }

    #[test]
    fn pieces_may_lose_their_outer_white_space_and_nothing_else() {
        let pieces = Wanted::Pieces([" a b\n", "\u{1f}c "].map(str::to_owned).to_vec());
        for text in ["a bc", " a b\n\u{1f}c ", "a b\nc", " a bc "] {
            assert!(pieces.accepts(Some(text)), "{text:?}");
        }
        for text in ["", "a b", "abc", "a b  c", "a b\n\nc", "a bcd"] {
            assert!(!pieces.accepts(Some(text)), "{text:?}");
        }
        assert!(Wanted::Pieces(vec![" ".to_owned()]).accepts(Some("")));
        assert!(Wanted::Pieces(vec![" ".to_owned()]).accepts(Some(" ")));
    }

    #[test]
    fn the_bound_grows_with_the_terms_the_scale_the_value_the_slack_and_the_factor() {
        let tolerance = Tolerance { factor: 2.0, ..F32 };
        let number = Number { value: -3.0, scale: 5.0, slack: 0.25 };
        // Eight terms make three rounds of sums: 2 · 4 · (5 · (1 + 3) + (1 + 3)) roundings.
        let roundings = 192.0 * Dtype::F32.unit_roundoff();
        assert_eq!(tolerance.bound(number, 8), roundings + 0.25);
        assert_eq!(tolerance.bound(Number::OPEN, 8), f64::INFINITY);
    }

    #[test]
    fn a_sum_of_eight_terms_may_lose_twice_what_three_rounds_lose() {
        assert_eq!([0, 1, 2, 8].map(summed), [1.0, 1.0, 1.0, 2.0]);
    }

    #[test]
    fn what_is_as_far_as_allowed_is_not_apart_and_an_infinity_only_from_others() {
        assert!(!apart(1.0, 3.0, 2.0) && !apart(3.0, 1.0, 2.0) && apart(1.0, 3.5, 2.0));
        assert!(!apart(f64::INFINITY, f64::INFINITY, 1.0) && apart(f64::INFINITY, 1.0, 1.0));
        assert!(apart(f64::NAN, f64::NAN, 1.0) && !apart(f64::NAN, 1.0, f64::INFINITY));
        assert!(apart(-1.0, 1.0, 1.0));
    }

    #[test]
    fn what_a_format_cannot_hold_is_expected_as_infinity() {
        let f16 = Tolerance { dtype: Dtype::F16, factor: 1.0 };
        assert!(f16.accepts(f64::INFINITY, Number::new(1e6, 1.0), 1));
        assert!(!f16.accepts(f64::INFINITY, Number::new(Dtype::F16.max(), 1.0), 1));
        // What it can hold is expected as it is, not as it is rounded: 1.0004 would be 1.
        let number = Number::new(1.0004, 0.0);
        assert!(f16.accepts(number.value + 0.95 * f16.bound(number, 1), number, 1));
    }

    #[test]
    fn half_formats_compute_in_f32() {
        let bf16 = Tolerance { dtype: Dtype::Bf16, factor: 1.0 };
        assert!(bf16.bound(Number::new(0.0, 90.0), 8) < 0.02);
    }
}
