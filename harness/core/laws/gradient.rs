//! The gradient is what the definition gives.
//!
//! ### Claim
//! The gradient of the summed output equals the definition's, within rounding.
//!
//! ### Why it matters
//! Training follows the gradient and never looks at the value. A right value with a wrong gradient
//! (detached, doubled, leaking into the reference) trains the wrong thing without a sign.
//!
//! ### Does not hold for
//! Components that cannot give gradients (`arrays: numpy` or `list`), and `gradient: false`. A
//! plain Rust component may return `grad_<leaf>`; where it does not, its gradient is taken by
//! central differences at f64, unless the declared gradient is not the slope of the value.
//!
//! ### Bugs it has caught
//! unsloth-zoo #892: a backward that counts twice. unsloth #5230: right loss, gradient exactly 0.
//!
//! ### Example
//! In `token-entropy`:
//! ```diff
//! -    terms = probs.detach() * log_probs.masked_fill(probs == 0, 0)  # not 0 * -inf
//! +    terms = probs * log_probs.masked_fill(probs == 0, 0)  # not 0 * -inf
//! ```

use crate::contract::Contract;
use crate::contract::cause::{Cause, Found};
use crate::contract::invariant::Invariant;
use crate::contract::outcome::{Outcome, Stop, broken};
use crate::contract::probe::{AnyProbe, first_output};
use crate::contract::stage::Pitfall;
use crate::laws::oracle;
use crate::numeric::tolerance::{Expected, Number, Tolerance, apart};
use crate::value::place::Dtype;
use crate::value::record::floats;
use crate::value::text::rounded;

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    Invariant::law("gradient", include_str!("gradient.rs"), Pitfall::GradientFlow, check)
        .under(C::wants_gradient)
        .needs_gradient()
}

fn check(probe: &mut AnyProbe<'_>) -> Outcome {
    let returned = probe.gradient_output()?;
    let given = floats(&*returned.output);
    let mut checked = false;
    for expected in probe.expected_gradient(&*returned.output) {
        detached(probe.tolerance, &returned.no_gradient, &expected)?;
        match given.iter().find(|(name, _)| *name == expected.field) {
            Some((name, found)) if found.shape() != expected.numbers.shape() => {
                let (found, expected) = (found.shape(), expected.numbers.shape());
                let message = format!("{name} has shape {found:?}, expected {expected:?}");
                return Err(Stop::Broken(Found::new(message, Cause::Malformed)));
            }
            Some((name, found)) => {
                oracle::compare(probe.tolerance, name, found, &expected, &|_| None)?
            }
            None if probe.place.dtype == Dtype::F64
                && probe.contract.gradient_is_slope(&**probe.options) =>
            {
                by_differences(probe, &expected)?;
            }
            None => continue,
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}

/// A leaf that gets no gradient at all, where the definition has one.
fn detached(tolerance: Tolerance, no_gradient: &[String], expected: &Expected) -> Outcome {
    let leaf = expected.field.trim_start_matches("grad_");
    let matters = |number: &Number| !tolerance.accepts(0.0, *number, expected.terms);
    if no_gradient.iter().any(|no| no == leaf) && expected.numbers.iter().any(matters) {
        broken!("`{leaf}` gets no gradient: the output is detached from it");
    }
    Ok(())
}

/// How far a leaf is moved to each side, relative to its magnitude or to 1; then half of it.
const STEP: f64 = 2e-4;

/// At most this many elements of a leaf are moved.
const ELEMENTS: usize = 12;

/// Compares central differences of the summed output, extrapolated from two steps (Richardson),
/// with the gradient of a leaf. Their error is of the order of `STEP⁴` and of `u / STEP`; where
/// both steps disagree the function bends too much here, and nothing is said.
fn by_differences(probe: &mut AnyProbe<'_>, expected: &Expected) -> Outcome {
    let leaf = expected.field.trim_start_matches("grad_");
    let numbers: Vec<_> = expected.numbers.iter().copied().collect();
    for element in probe.pick.shuffled(numbers.len()).into_iter().take(ELEMENTS) {
        let (wide, magnitude) = slope(probe, leaf, element, STEP)?;
        let (narrow, _) = slope(probe, leaf, element, STEP / 2.0)?;
        let found = (4.0 * narrow - wide) / 3.0;
        let number = numbers[element];
        let size = 1.0 + number.scale + number.value.abs() + magnitude;
        let smooth = (wide - narrow).abs() <= 1e-3 * size;
        let allowed = 1e-6 * size;
        if smooth && apart(found, number.value, allowed) {
            let message = format!(
                "the derivative by {leaf} at element {element} is {}, expected {} ± {allowed:.1e} \
                 (central differences)",
                rounded(found),
                rounded(number.value),
            );
            return Err(Stop::number(message, found));
        }
    }
    Ok(())
}

/// The central difference of the summed output by one element of a leaf, and the sum's magnitude.
fn slope(
    probe: &mut AnyProbe<'_>,
    leaf: &str,
    element: usize,
    step: f64,
) -> Result<(f64, f64), Stop> {
    let (mut summed, mut moved) = ([0.0; 2], [0.0; 2]);
    for (side, direction) in [1.0, -1.0].into_iter().enumerate() {
        let case = probe.case.with_floats(&mut |name, floats| {
            if name == leaf {
                floats[element] += direction * step * floats[element].abs().max(1.0);
                moved[side] = floats[element];
            }
        });
        let returned = probe.call(&*case)?;
        let output = floats(&*returned.output);
        let first = first_output(probe.contract, &*case, &**probe.options, &*returned.output);
        let first = output.iter().find(|(name, _)| Some(*name) == first);
        summed[side] = first.map_or(0.0, |(_, array)| array.sum());
    }
    Ok(((summed[0] - summed[1]) / (moved[0] - moved[1]), summed[0].abs()))
}
