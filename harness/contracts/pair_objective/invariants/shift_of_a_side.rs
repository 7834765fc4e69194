//! Only the ratio of policy to reference counts.
//!
//! ### Claim
//! Adding one number to policy and reference of one side changes no loss.
//!
//! ### Why it matters
//! How unlikely a completion is to begin with must cancel. Where it does not, the loss prefers
//! short completions, or loses the digits of long ones.
//!
//! ### Does not hold for
//! `orpo` and `simpo`, which have no reference, and numbers that rounding would change.
//!
//! ### Bugs it has caught
//! OpenRLHF #620: log-probabilities in bf16; a reference that has no part in the loss.
//!
//! ### Example
//! Under `kind="sigmoid-norm"`:
//! ```diff
//! -        chosen = policy_chosen / chosen_lengths - ref_chosen
//! -        rejected = policy_rejected / rejected_lengths - ref_rejected
//! +        chosen, rejected = chosen / chosen_lengths, rejected / rejected_lengths
//! ```

use super::{losses, moved};
use crate::pair_objective::PairObjective;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::ProbabilityRatio,
    &[
        "reference-not-subtracted",
        "reference-not-averaged",
        "reference-averaged-alone",
        "references-exchanged",
        "beta-on-the-policy-alone",
    ],
    check,
)
.under(|options| options.kind.has_reference());

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let (options, dtype) = (probe.options, probe.place.dtype);
    let amount = *probe.pick.one(&[-1.0, -2.0, -16.0, -64.0, -256.0]);
    let mut shifted = probe.case.clone();
    let sides = match probe.pick.below(2) {
        0 => [&mut shifted.policy_chosen, &mut shifted.ref_chosen],
        _ => [&mut shifted.policy_rejected, &mut shifted.ref_rejected],
    };
    for field in sides {
        *field = moved(field, dtype, |_| amount)?;
    }
    let name = options.output();
    let before = losses(&probe.finite_output()?.output, options)?;
    let after = losses(&probe.call(&shifted)?, options)?;
    let allowed = probe.related(name) + probe.bounds_in(&probe.expected_of(&shifted), name);
    let what = format_args!("with {amount} added to policy and reference of one side, {name}");
    unchanged(what, &after, &before, &allowed)
}
