//! The output is finite.
//!
//! ### Claim
//! The output is finite.
//!
//! ### Why it matters
//! One NaN in one advantage makes the loss NaN, the gradient NaN, and every weight NaN after the
//! next step. It comes from a division by a deviation of 0, or from inf · 0 in a backward pass.
//!
//! ### Does not hold for
//! Inputs whose exact result is infinite; a contract does not generate them. Options under which
//! NaN says that there is no answer.
//!
//! ### Bugs it has caught
//! SB3 #1028, ROLL #475: deviations with ddof 1 over one element. verl #1779: exp of a log-ratio
//! above 88.
//!
//! ### Example
//! In `group-advantage`:
//! ```diff
//! -            centred = centred / own.std(correction=ddof)
//! +            centred = centred / (own.std(correction=ddof) + epsilon)
//! ```

use std::sync::Arc;

use ndarray::IxDyn;

use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::contract::outcome::{Outcome, Stop};
use crate::contract::probe::AnyProbe;
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::Expected;
use crate::value::record::{floats, index};
use crate::value::text::number;

/// The law, for any contract.
pub fn law<D: Definition>() -> Invariant<D> {
    Invariant::law("finite", include_str!("finite.rs"), Pitfall::StabilityConstant, check)
}

fn check(probe: &mut AnyProbe<'_>) -> Outcome {
    let returned = probe.output()?;
    for (name, array) in floats(&*returned.output) {
        let mut bad = array.indexed_iter().filter(|(_, x)| !x.is_finite()).peekable();
        if bad.peek().is_none() {
            continue;
        }
        let allowed = |index: &IxDyn, expected: &[Expected]| {
            let field = expected.iter().find(|expected| expected.field == name);
            field.is_some_and(|field| {
                field.numbers.get(index).is_some_and(|number| !number.value.is_finite())
            })
        };
        let expected = match name.starts_with("grad_") {
            true => Arc::new(probe.expected_gradient(&*returned.output)),
            false => probe.expected(),
        };
        let no_answer = |x: &f64| x.is_nan() && probe.contract.may_give_nan(&**probe.options);
        if let Some((at, x)) = bad.find(|(i, x)| !no_answer(x) && !allowed(i, &expected)) {
            let at = index(&at);
            let message = format!("{name}{at} is {}, expected a finite number", number(*x));
            return Err(Stop::number(message, *x));
        }
    }
    Ok(())
}
