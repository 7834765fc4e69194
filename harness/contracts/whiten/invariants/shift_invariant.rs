//! A constant added to all values is taken off again, or stays.
//!
//! ### Claim
//! Adding a constant to all values changes nothing, or adds it where the mean is declared to stay.
//!
//! ### Why it matters
//! The level of rewards and returns is arbitrary. What depends on it was not shifted by the mean
//! of all tokens that count, and of no others.
//!
//! ### Does not hold for
//! Sets of fewer than two tokens; constants that rounding would change.
//!
//! ### Bugs it has caught
//! Values divided and never shifted; `v - mean/σ` for `(v - mean)/σ`.
//!
//! ### Example
//! ```diff
//! -    whitened = values * torch.rsqrt(variance + epsilon)
//! +    whitened = (values - mean) * torch.rsqrt(variance + epsilon)
//! ```

use super::whole_sets;
use crate::whiten::Whiten;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Whiten> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["mean-never-subtracted", "mean-over-std-precedence"],
    check,
);

fn check(probe: &mut Probe<'_, Whiten>) -> Outcome {
    let sets = whole_sets(probe.case, probe.options)?;
    let before = probe.output()?;
    let amount = *probe.pick.one(&[1.0, -1.0, 2.0, -4.0, 0.5, 8.0]);
    let mut shifted = probe.case.clone();
    for (value, kept) in shifted.values.iter_mut().zip(&probe.case.mask) {
        let moved = *value + amount;
        if *kept && moved - amount != *value {
            return Err(Stop::Vacuous);
        }
        *value = if *kept { moved } else { *value };
    }
    let after = probe.call(&shifted)?;
    let moved = probe.expected_of(&shifted);
    let allowed = probe.related("whitened") + probe.bounds_in(&moved, "whitened");
    let kept = if probe.options.shift_mean { 0.0 } else { amount };
    for at in sets.into_iter().flat_map(|(set, _)| set) {
        let expected = before.output.whitened[at] + kept;
        let what = format_args!("with {amount} added to every value, whitened[{}, {}]", at.0, at.1);
        near(what, after.whitened[at], expected, allowed[[at.0, at.1]])?;
    }
    Ok(())
}
