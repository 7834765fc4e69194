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
//!
//! ### Example
//! In `policy-update`:
//! ```diff
//! -        arms = torch.multinomial(probs, 16, replacement=True)
//! +        arms = torch.multinomial(probs, 16, replacement=True, generator=generator)
//! ```

use crate::contract::cause::{Cause, Found};
use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::contract::options::AnyOptions;
use crate::contract::outcome::{Outcome, Stop, broken};
use crate::contract::probe::AnyProbe;
use crate::contract::stage::Pitfall;
use crate::value::record::{self, floats, texts};
use crate::value::text::{pair, quoted_or_null};

/// What to do where it is meant.
const ON_PURPOSE: &str = "if it is meant to differ, declare `deterministic: false` \
    (`deterministic=False` in Python)";

/// The law, for any contract.
pub fn law<D: Definition<Options: AnyOptions>>() -> Invariant<D> {
    let doc = include_str!("deterministic.rs");
    Invariant::law("deterministic", doc, Pitfall::PurityShapeDtype, check)
        .under(AnyOptions::deterministic)
}

fn check(probe: &mut AnyProbe<'_>) -> Outcome {
    let first = probe.output()?;
    let second = probe.call(&**probe.case)?;
    for ((name, left), (_, right)) in
        floats(&*first.output).into_iter().zip(floats(&*second.output))
    {
        let both = left.indexed_iter().zip(&right);
        let differ = |a: f64, b: f64| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
        let at = both.into_iter().find(|((_, a), b)| differ(**a, **b));
        if let Some(((index, a), b)) = at {
            let index = record::index(&index);
            let cause = Cause::of_number(if a.is_finite() { *b } else { *a });
            let [first, second] = pair(*a, *b);
            let apart = match (a - b).abs() {
                apart if apart.is_finite() && apart > 0.0 => format!(", {apart:.1e} apart"),
                _ => String::new(),
            };
            let both = format!("{first} the first time and {second} the second{apart}");
            let message = format!("{name}{index} is {both}; {ON_PURPOSE}");
            return Err(Stop::Broken(Found::new(message, cause)));
        }
    }
    for ((name, left), (_, right)) in texts(&*first.output).into_iter().zip(texts(&*second.output))
    {
        let differ = left.indexed_iter().zip(&right).find(|((_, a), b)| *a != *b);
        if let Some(((index, a), b)) = differ {
            let index = record::index(&index);
            let [a, b] = [a, b].map(|text| quoted_or_null(text.as_deref()));
            broken!("{name}{index} is {a} the first time and {b} the second; {ON_PURPOSE}");
        }
    }
    Ok(())
}
