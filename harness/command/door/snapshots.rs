//! What components give on kept cases, as [insta](https://insta.rs) snapshots: a change of
//! behaviour shows up in `cargo insta review`, a change of the last bits does not.
//!
//! Each number is written with one digit more than its tolerance, the bound that
//! [`tolerance`](crate::author::tolerance) gives for its dtype and for the terms that made it; and
//! it is not the texts that are compared but the numbers in them, with that tolerance. So noise
//! neither breaks a snapshot nor rewrites one, not even where a number lies between two roundings.
//!
//! [`Suite::snapshots`](crate::Suite::snapshots) adds a test for each component and place. Without
//! `cargo-insta`, run the tests with `INSTA_UPDATE=always` and read the difference in git.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use ndarray::ArrayD;

use shakedown_core::contract::component::{Call, Component, Gradients};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::numeric::tolerance::{Expected, Number, Tolerance, apart};
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{Shared, Value, same_bits};
use shakedown_core::value::text;
use shakedown_core::value::text::nested;
use shakedown_engine::files::corpora::regressions;
use shakedown_engine::subject::Subject;

/// What a component gave, one case after the other.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pieces: Vec<Piece>,
}

/// A piece of a snapshot.
#[derive(Clone, Debug)]
enum Piece {
    /// A text that must stay as it is.
    Text(String),
    /// A number, and how far from it a recorded one may be.
    Number { value: f64, allowed: f64 },
}

impl Recording {
    /// Calls a component, and adds what it gives under a name.
    pub fn add(
        &mut self,
        contract: &dyn AnyContract,
        name: &str,
        component: &mut dyn Component,
        call: &Call<'_>,
        tolerance: Tolerance,
    ) {
        self.text(format!("{name}\n"));
        let returned = match component.call(call) {
            Ok(returned) => returned,
            Err(failure) => {
                // A traceback has paths and line numbers, which are no behaviour.
                let failure = failure.to_string();
                return self.text(format!("  {}\n", failure.lines().next().unwrap_or("")));
            }
        };
        let dtype = call.place.dtype;
        let mut expected = contract.oracle(&**call.case, &**call.options, dtype);
        if call.gradient {
            expected.extend(contract.oracle_gradient(&**call.case, &**call.options, dtype));
        }
        for (field, value) in returned.output.values() {
            let Some(value) = value else { continue };
            self.text(format!("  {field} "));
            match value {
                Value::Float(found) => {
                    let expected = expected.iter().find(|expected| expected.field == field);
                    self.numbers(&found, expected, tolerance);
                }
                other => self.text(text::value(&other)),
            }
            self.text("\n");
        }
    }

    fn text(&mut self, text: impl Into<String>) {
        self.pieces.push(Piece::Text(text.into()));
    }

    fn numbers(&mut self, found: &ArrayD<f64>, expected: Option<&Expected>, tolerance: Tolerance) {
        let expected = expected.filter(|expected| expected.numbers.shape() == found.shape());
        let mut scales = expected.iter().flat_map(|expected| {
            expected.numbers.iter().map(|number| (number.scale, expected.terms))
        });
        // The array without its numbers: brackets and commas.
        let mut skeleton = String::new();
        nested(&mut skeleton, found.view(), &|skeleton, _| skeleton.push('#'));
        let mut between = skeleton.split('#');
        self.text(between.next().unwrap_or(""));
        for (value, after) in found.iter().zip(between) {
            let (scale, terms) = scales.next().unwrap_or((f64::INFINITY, 1));
            // Of a number that the contract leaves open only its own rounding is known.
            let own = Number::new(*value, value.abs());
            let (scale, terms) = if scale.is_finite() { (scale, terms) } else { (own.scale, 1) };
            let allowed = match value.is_finite() {
                true => tolerance.bound(Number { scale, ..own }, terms),
                false => 0.0,
            };
            self.pieces.push(Piece::Number { value: *value, allowed });
            self.text(after);
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The text of the snapshot.
    pub fn shown(&self) -> String {
        let mut shown = String::new();
        for piece in &self.pieces {
            let _ = match piece {
                Piece::Text(text) => shown.write_str(text),
                Piece::Number { value, allowed } => shown.write_str(&rounded(*value, *allowed)),
            };
        }
        shown
    }

    /// Whether a text that was recorded says the same, each number within its tolerance.
    pub fn agrees(&self, recorded: &str) -> bool {
        let mut rest = recorded;
        let agree = self.pieces.iter().all(|piece| match piece {
            Piece::Text(text) => {
                let after = rest.strip_prefix(text.as_str());
                rest = after.unwrap_or(rest);
                after.is_some()
            }
            Piece::Number { value, allowed } => {
                let end = rest.find([',', ']', '\n']).unwrap_or(rest.len());
                let (number, after) = rest.split_at(end);
                rest = after;
                number.parse().is_ok_and(|number: f64| {
                    (number.is_nan() && value.is_nan()) || !apart(*value, number, *allowed)
                })
            }
        });
        agree && rest.is_empty()
    }

    /// Compares with `FOLDER/NAME.snap`, as `insta::assert_snapshot` does.
    ///
    /// # Panics
    /// There is no such snapshot yet, or it does not agree; the new one is written beside it as
    /// `NAME.snap.new`, or in its place with `INSTA_UPDATE=always`.
    #[track_caller]
    pub fn assert(self, folder: &Path, name: &str) {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let shown = self.shown();
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(folder);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.set_comparator(Box::new(Within(Arc::new(self))));
        settings.bind(|| insta::assert_snapshot!(name, shown));
    }
}

/// The number with one digit more than its tolerance has; what is smaller than that is 0.
fn rounded(x: f64, allowed: f64) -> String {
    if !x.is_finite() || allowed <= 0.0 {
        return text::number(x);
    }
    let exponent = allowed.log10().floor() as i32 - 1;
    let near = match usize::try_from(-exponent) {
        Ok(decimals) => format!("{x:.decimals$}").parse().expect("a formatted number can be read"),
        Err(_) => (x / 10_f64.powi(exponent)).round() * 10_f64.powi(exponent),
    };
    // Without the sign of a zero.
    text::number(near + 0.0)
}

/// Snapshots agree when their numbers do.
struct Within(Arc<Recording>);

impl insta::Comparator for Within {
    fn matches(&self, reference: &insta::Snapshot, _: &insta::Snapshot) -> bool {
        // insta takes the last line break off.
        let text = reference.contents().as_text().map(ToString::to_string);
        text.is_some_and(|text| self.0.agrees(&format!("{}\n", text.trim_end())))
    }

    fn dyn_clone(&self) -> Box<dyn insta::Comparator> {
        Box::new(Within(Arc::clone(&self.0)))
    }
}

/// What a component gives on the regressions of its contract that its options allow; `None`, and
/// a word on standard error, where the place is not here.
///
/// # Errors
/// The component does not load, a regression cannot be read, or none is allowed.
pub(crate) fn of_subject(subject: &mut Subject, place: Place) -> Result<Option<Recording>, Error> {
    if let Some(why) = subject.component.prepare(place)? {
        eprintln!("{} · {place}   skipped: {why}", subject.name);
        return Ok(None);
    }
    let gradients = subject.component.gradients(place);
    let gradient = subject.contract.wants_gradient(&*subject.options)
        && !matches!(gradients, Gradients::None(_));
    let tolerance = subject.tolerance_at(place);
    let mut recording = Recording::default();
    let mut recorded: Vec<(String, Shared)> = Vec::new();
    for (name, file) in regressions(subject.contract, subject.corpora.as_deref())? {
        let case = file.case.rounded(place.dtype);
        // A package may have a copy of one of shakedown's own.
        let twin =
            |(known, other): &(String, Shared)| *known == name && same_bits(&**other, &*case);
        let valid = subject.contract.valid(&*case, &*subject.options, place.dtype).is_ok();
        if !valid || recorded.iter().any(twin) {
            continue;
        }
        let call = Call { case: &case, options: &subject.options, place, gradient };
        recording.add(subject.contract, &name, &mut subject.component, &call, tolerance);
        recorded.push((name, case));
    }
    if recording.is_empty() {
        let options = "no regression is a case of the component's options";
        return Err(Error::new(options).within(subject.name.clone()));
    }
    Ok(Some(recording))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64) -> Recording {
        let mut recording = Recording::default();
        recording.text("a\n  x [0, ");
        recording.pieces.push(Piece::Number { value, allowed: 4e-7 });
        recording.text("]\n");
        recording
    }

    #[test]
    fn numbers_have_one_digit_more_than_their_tolerance() {
        assert_eq!(of(1.0 / 3.0).shown(), "a\n  x [0, 0.33333333]\n");
        assert_eq!(of(-3e-9).shown(), "a\n  x [0, 0]\n");
        assert_eq!(rounded(123_456.0, 40.0), "123456");
        assert_eq!(rounded(123_456.0, 400.0), "123460");
        assert_eq!(rounded(f64::NAN, 0.0), "NaN");
    }

    #[test]
    fn noise_agrees_on_both_sides_of_a_rounding_and_a_change_does_not() {
        let (below, above) = (0.123_456_784_999, 0.123_456_785_001);
        assert_ne!(of(below).shown(), of(above).shown());
        assert!(of(below).agrees(&of(above).shown()) && of(above).agrees(&of(below).shown()));
        assert!(!of(below).agrees(&of(below + 1e-6).shown()));
        assert!(
            !of(f64::NAN).agrees(&of(0.0).shown()) && of(f64::NAN).agrees(&of(f64::NAN).shown())
        );
    }

    #[test]
    fn another_shape_or_another_name_does_not_agree() {
        for other in ["a\n  x [0, 1, 2]\n", "a\n  y [0, 1]\n", "a\n  x [0, 1]\nb\n", "a\n", ""] {
            assert!(!of(1.0).agrees(other), "{other:?}");
        }
    }
}
