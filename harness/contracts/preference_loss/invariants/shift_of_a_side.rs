//! Only the ratio of policy to reference counts.
//!
//! ### Claim
//! Adding one number to policy and reference of one side changes no loss.
//!
//! ### Why it matters
//! How long or unlikely a completion is must cancel. Where it does not, the loss prefers short
//! completions, or loses the digits of long ones.
//!
//! ### Does not hold for
//! `reference_free: true`, and numbers that rounding would change.
//!
//! ### Bugs it has caught
//! OpenRLHF #620: log-probabilities in bf16; a reference that has no part in the margin.
//!
//! ### Example
//! ```diff
//!      if not reference_free:
//! -        margins = margins - ref_chosen - ref_rejected
//! +        margins = margins - (ref_chosen - ref_rejected)
//! ```

use super::losses;
use crate::preference_loss::PreferenceLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> = Rule::new(
    Pitfall::ProbabilityRatio,
    &["reference-ignored", "reference-added", "margin-in-half-precision"],
    check,
)
.under(|options| !options.reference_free);

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let (options, dtype) = (probe.options, probe.place.dtype);
    let amount = *probe.pick.one(&[-1.0, -2.0, -16.0, -64.0, -256.0]);
    let mut shifted = probe.case.clone();
    let sides = match probe.pick.below(2) {
        0 => [&mut shifted.policy_chosen, &mut shifted.ref_chosen],
        _ => [&mut shifted.policy_rejected, &mut shifted.ref_rejected],
    };
    for field in sides {
        let exact = |x: &f64| {
            let moved = x + amount;
            dtype.round(moved) == moved && moved - amount == *x && moved - x == amount
        };
        if !field.iter().all(exact) {
            return Err(Stop::Vacuous);
        }
        field.mapv_inplace(|x| x + amount);
    }
    let name = options.output();
    let before = losses(&probe.finite_output()?.output, options)?;
    let after = losses(&probe.call(&shifted)?, options)?;
    let allowed = probe.related(name) + probe.bounds_in(&probe.expected_of(&shifted), name);
    let what = format_args!("with {amount} added to policy and reference of one side, {name}");
    close(what, &after, &before, &allowed)
}
