//! Returns and advantages are one thing.
//!
//! ### Claim
//! The advantages are the returns less the values, whitened where that is declared.
//!
//! ### Why it matters
//! The critic is trained on the returns and the policy on the advantages. Where they part, one of
//! the two follows a target that the other knows nothing of.
//!
//! ### Does not hold for
//! `whiten: true` with fewer than two tokens, where `empty_mask` says what is given.
//!
//! ### Bugs it has caught
//! CleanRL #337: returns made of the advantages of the round before.
//!
//! ### Example
//! Under `whiten=True`:
//! ```diff
//! -    if whiten:
//! -        advantages = whitened(advantages, mask)
//!      returns = (advantages + values).where(mask, 0.0)
//! +    if whiten:
//! +        advantages = whitened(advantages, mask)
//! ```

use crate::gae::Gae;
use crate::gae::oracle::whitened;
use shakedown_core::contract::prelude::*;
use shakedown_core::numeric::tolerance::SAFETY;

pub(super) const RULE: Rule<Gae> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "returns-from-stale-advantages",
        "returns-without-lambda",
        "returns-of-whitened-advantages",
        "not-whitened",
    ],
    check,
);

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let case = probe.case;
    let places: Vec<(usize, usize)> =
        case.mask.indexed_iter().filter(|(_, kept)| **kept).map(|(at, _)| at).collect();
    if places.is_empty() || probe.options.too_few(case) {
        return Err(Stop::Vacuous);
    }
    let returned = probe.finite_output()?;
    let [advantages, returns] = ["advantages", "returns"].map(|field| probe.bounds(field));
    let at = |(row, token): (usize, usize)| [row, token];
    let (dtype, tolerance) = (probe.place.dtype, probe.tolerance);
    let unit = SAFETY * dtype.arithmetic().unit_roundoff();
    // What the returns may be off by becomes the scale of what is made of them.
    let raw = |place: &(usize, usize)| {
        let (found, value) = (returned.output.returns[*place], case.values[*place]);
        // The outputs of a wrong component may be larger than the oracle knows.
        let own = Number::new(found, found.abs() + value.abs());
        let bound = returns[&at(*place)[..]] + tolerance.bound(own, 1);
        Number::new(found - value, bound / unit)
    };
    let raw: Vec<Number> = places.iter().map(raw).collect();
    let depth = 1.0 + (raw.len() as f64).log2();
    let (numbers, depth) =
        if probe.options.whiten { (whitened(&raw, dtype), depth) } else { (raw, 1.0) };
    for (place, number) in places.iter().zip(numbers) {
        let allowed = advantages[&at(*place)[..]] + unit * number.scale * depth;
        let found = returned.output.advantages[*place];
        if apart(found, number.value, allowed) {
            let [found, expected] = pair(found, number.value);
            let (row, token) = place;
            let whitened = if probe.options.whiten { ", whitened," } else { "" };
            broken!(
                "advantages[{row}, {token}] is {found}, but returns less values{whitened} make \
                 {expected} ± {allowed:.1e}"
            );
        }
    }
    Ok(())
}
