//! Values move towards the returns that are given.
//!
//! ### Claim
//! With `targets: given`, no update moves a value away from its return.
//!
//! ### Why it matters
//! The loss falls towards anything: advantages, returns with the other sign. A critic that has
//! learned those gives a baseline that adds noise instead of taking it off.
//!
//! ### Does not hold for
//! Returns that the trainer makes: the oracle judges them.
//!
//! ### Bugs it has caught
//! Planted: advantages for returns, and returns with the other sign.
//!
//! ### Example
//! Under `targets="given"`:
//! ```diff
//! -        errors = (table + returns) ** 2
//! +        errors = (table - returns) ** 2
//! ```

use crate::critic_step::{CriticStep, Targets};
use shakedown_core::contract::prelude::*;
use shakedown_core::contract::step::Stepped as _;

pub(super) const RULE: Rule<CriticStep> =
    Rule::new(Pitfall::LogSpaceSign, &["advantages-trained", "sign-of-the-return-flipped"], check)
        .under(|options| options.targets == Targets::Given);

fn check(probe: &mut Probe<'_, CriticStep>) -> Outcome {
    let case = probe.case;
    let Some(returns) = &case.returns else { return Err(Stop::Vacuous) };
    let returned = probe.finite_output()?;
    let bounds = probe.related("gradient");
    for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        for (update, table) in returned.output.gradient.outer_iter().enumerate() {
            let place = [update, at.0, at.1];
            let (slope, allowed) = (table[&place[1..]], bounds[&place[..]]);
            let error = case.values[&place[..]] - returns[at];
            if slope * error < 0.0 && slope.abs() > allowed {
                broken!(
                    "update {update} moves the value of token {} of {} away from its return: its \
                     gradient is {}",
                    at.1,
                    CriticStep::row(case, at.0),
                    number(slope)
                );
            }
        }
    }
    Ok(())
}
