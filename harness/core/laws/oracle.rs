//! The output is what the definition gives.
//!
//! ### Claim
//! The output equals the definition, within rounding.
//!
//! ### Why it matters
//! The other invariants say how an output must behave; this one says what it is. The oracle is
//! written from the definition, in plain f64, with the options that the component declares.
//!
//! ### Does not hold for
//! Values that the contract leaves open. A component that follows another convention needs the
//! option that says so.
//!
//! ### Bugs it has caught
//! Nearly all of them, once the convention is declared: for example prime-rl #390, `r - mean/std`
//! for `(r - mean)/std`.
//!
//! ### Example
//! In `group-advantage`:
//! ```diff
//! -            centred = own - own.mean() / (own.std(correction=ddof) + epsilon)
//! +            centred = centred / (own.std(correction=ddof) + epsilon)
//! ```

use ndarray::{ArrayD, ArrayRef, Dimension as _, IxDyn};

use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::contract::outcome::{Outcome, Stop, broken};
use crate::contract::probe::AnyProbe;
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::{Expected, ExpectedTexts, Number, Tolerance};
use crate::value::record::{self, floats, texts};
use crate::value::text;

/// The law, for any contract.
pub fn law<D: Definition>() -> Invariant<D> {
    Invariant::law("oracle", include_str!("oracle.rs"), Pitfall::Configuration, check)
}

fn check(probe: &mut AnyProbe<'_>) -> Outcome {
    let returned = probe.output()?;
    let expected = probe.expected();
    let fields = floats(&*returned.output);
    let mut says_something = false;
    for expected in expected.iter() {
        let Some((name, found)) = fields.iter().find(|(name, _)| *name == expected.field) else {
            continue;
        };
        if found.shape() != expected.numbers.shape() {
            let (found, expected) = (found.shape(), expected.numbers.shape());
            broken!("`{name}` has shape {found:?}, expected {expected:?}");
        }
        match probe.contract.whole().contains(name) {
            true => compare_whole(name, found, expected)?,
            false => {
                let (case, options) = (&**probe.case, &**probe.options);
                compare(probe.tolerance, name, found, expected, &|at| {
                    probe.contract.meaning(case, options, found.view(), expected, at)
                })?;
            }
        }
        says_something |= expected.numbers.iter().any(|number| !number.scale.is_infinite());
    }
    let expected = probe.contract.oracle_texts(&**probe.case, &**probe.options);
    compare_texts(&texts(&*returned.output), &expected)?;
    says_something |= expected.iter().flat_map(|field| &field.texts).any(|text| !text.is_open());
    if says_something { Ok(()) } else { Err(Stop::Vacuous) }
}

fn compare_texts(fields: &[(&str, ArrayD<Option<String>>)], expected: &[ExpectedTexts]) -> Outcome {
    for expected in expected {
        let found = fields.iter().find(|(name, _)| *name == expected.field);
        let pairs = found.iter().flat_map(|(_, found)| found.indexed_iter()).zip(&expected.texts);
        for ((index, found), wanted) in pairs {
            if !wanted.accepts(found.as_deref()) {
                let (name, index) = (expected.field, record::index(&index));
                let texts = text::found_for(found.as_deref(), wanted.shown().as_deref());
                broken!("{name}{index} is {texts}");
            }
        }
    }
    Ok(())
}

/// Compares whole numbers with what an oracle expects of them: they are right or wrong.
fn compare_whole(name: &str, found: &ArrayRef<f64, IxDyn>, expected: &Expected) -> Outcome {
    if let Some((at, found, number)) = first_wrong(Tolerance::WHOLE, found, expected) {
        let [text, expected] = text::pair(found, number.value);
        let at = record::index(&at);
        return Err(Stop::number(format!("{name}{at} is {text}, expected {expected}"), found));
    }
    Ok(())
}

/// Compares one output field with what an oracle expects of it; `meaning` says of a place what a
/// wrong number there means.
pub fn compare(
    tolerance: Tolerance,
    name: &str,
    found: &ArrayRef<f64, IxDyn>,
    expected: &Expected,
    meaning: &dyn Fn(&[usize]) -> Option<String>,
) -> Outcome {
    if let Some((at, found, number)) = first_wrong(tolerance, found, expected) {
        let bound = tolerance.bound(number, expected.terms);
        let [text, expected] = text::pair(found, number.value);
        let meaning = meaning(at.slice()).map(|meaning| format!(": {meaning}")).unwrap_or_default();
        let at = record::index(&at);
        let message = format!("{name}{at} is {text}, expected {expected} ± {bound:.1e}{meaning}");
        return Err(Stop::number(message, found));
    }
    Ok(())
}

/// The first number that is not what an oracle expects: where it stands, and both.
fn first_wrong(
    tolerance: Tolerance,
    found: &ArrayRef<f64, IxDyn>,
    expected: &Expected,
) -> Option<(IxDyn, f64, Number)> {
    let pairs = found.indexed_iter().zip(&expected.numbers);
    let wrong = pairs
        .into_iter()
        .find(|((_, found), number)| !tolerance.accepts(**found, **number, expected.terms));
    wrong.map(|((at, found), number)| (at, *found, *number))
}
