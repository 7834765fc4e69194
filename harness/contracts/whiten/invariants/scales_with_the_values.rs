//! The unit of the values does not matter, as far as ε lets it.
//!
//! ### Claim
//! Multiplying all values by k multiplies their distance from the mean by k·s/s', with the s of
//! the options.
//!
//! ### Why it matters
//! It shows what the division is by, whatever the values are: a variance, a range and an ε outside
//! the root all scale differently.
//!
//! ### Does not hold for
//! Sets of fewer than two tokens; factors that rounding would change.
//!
//! ### Bugs it has caught
//! Divisions by the variance, or by nothing.
//!
//! ### Example
//! ```diff
//! -    whitened = (values - mean) / (variance + epsilon)
//! +    whitened = (values - mean) * torch.rsqrt(variance + epsilon)
//! ```

use super::whole_sets;
use crate::whiten::{Whiten, protected, statistics};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Whiten> = Rule::new(
    Pitfall::StabilityConstant,
    &["not-divided", "divided-by-the-variance", "epsilon-outside-the-root"],
    check,
);

fn check(probe: &mut Probe<'_, Whiten>) -> Outcome {
    let sets = whole_sets(probe.case, probe.options)?;
    let before = probe.output()?;
    let factor = *probe.pick.one(&[0.5, 0.25, 2.0, 4.0]);
    let mut multiplied = probe.case.clone();
    for (value, kept) in multiplied.values.iter_mut().zip(&probe.case.mask) {
        *value *= if *kept { factor } else { 1.0 };
    }
    let after = probe.call(&multiplied)?;
    let moved = probe.expected_of(&multiplied);
    let bounds = (probe.bounds("whitened"), probe.bounds_in(&moved, "whitened"));
    for (set, values) in sets {
        let (mean, variance) = statistics(&values, probe.options.ddof);
        let divisors = [variance, factor * factor * variance]
            .map(|variance| protected(variance, probe.options));
        let stretch = factor * divisors[0] / divisors[1];
        let kept = if probe.options.shift_mean { 0.0 } else { mean };
        for at in set {
            let expected = stretch * (before.output.whitened[at] - kept) + factor * kept;
            let place = [at.0, at.1];
            let allowed = stretch * bounds.0[place] + bounds.1[place];
            let what =
                format_args!("with every value times {factor}, whitened[{}, {}]", at.0, at.1);
            near(what, after.whitened[at], expected, allowed)?;
        }
    }
    Ok(())
}
