//! Two equal calls agree.
//!
//! ### Claim
//! The same call twice gives the same result.
//!
//! ### Why it matters
//! A component that keeps state between calls, or samples where it should compute, cannot be
//! compared with anything, and a training run with it cannot be repeated.
//!
//! ### Does not hold for
//! Components that sample on purpose and say so with `deterministic: false`.
//!
//! ### Bugs it has caught
//! verl #4708: a mode that one call leaves behind for the next. unsloth-zoo #892: gradients that
//! were accumulated before.

use crate::broken;
use crate::contract::{Contract, Pitfall, SharedOptions};
use crate::invariant::{Doc, Invariant, Outcome, Probe};
use crate::laws::{floats, texts};
use crate::text::quoted_or_null;

/// The law, for the contract `C`.
pub fn law<C: Contract>() -> Invariant<C> {
    Invariant {
        id: "deterministic",
        doc: Doc(include_str!("deterministic.rs")),
        pitfall: Pitfall::PurityShapeDtype,
        catches: &[],
        needs_gradient: false,
        applies: |options, _| options.deterministic(),
        check: check::<C>,
    }
}

fn check<C: Contract>(probe: &mut Probe<'_, C>) -> Outcome {
    let first = probe.output()?;
    let second = probe.call(probe.case)?;
    for ((name, left), (_, right)) in floats(&first.output).into_iter().zip(floats(&second)) {
        let both = left.indexed_iter().zip(&right);
        let differ = |a: f64, b: f64| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
        let at = both.into_iter().find(|((_, a), b)| differ(**a, **b));
        if let Some(((index, a), b)) = at {
            let index = crate::text::index(&index);
            let (a, b) = (crate::text::number(*a), crate::text::number(*b));
            broken!("{name}{index} is {a} the first time and {b} the second");
        }
    }
    for ((name, left), (_, right)) in texts(&first.output).into_iter().zip(texts(&second)) {
        let differ = left.indexed_iter().zip(&right).find(|((_, a), b)| *a != *b);
        if let Some(((index, a), b)) = differ {
            let index = crate::text::index(&index);
            let [a, b] = [a, b].map(|text| quoted_or_null(text.as_deref()));
            broken!("{name}{index} is {a} the first time and {b} the second");
        }
    }
    Ok(())
}
