//! A loss without a reference does not look at it.
//!
//! ### Claim
//! With `reference_free`, other reference log-probabilities change no loss.
//!
//! ### Why it matters
//! CPO and SimPO have no reference model; what is passed in its place is zeros, or a leftover.
//!
//! ### Does not hold for
//! `reference_free: false`.
//!
//! ### Bugs it has caught
//! An option that is read by the trainer and not handed to the loss.
//!
//! ### Example
//! Under `reference_free=True`:
//! ```diff
//! -    margins = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)
//! +    margins = policy_chosen - policy_rejected
//! +    if not reference_free:
//! +        margins = margins - (ref_chosen - ref_rejected)
//! ```

use super::losses;
use crate::preference_loss::PreferenceLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> =
    Rule::new(Pitfall::Configuration, &["reference-used-although-free"], check)
        .under(|options| options.reference_free);

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let options = probe.options;
    let mut other = probe.case.clone();
    other.ref_chosen.mapv_inplace(|_| *probe.pick.one(&[0.0, -1.0, -3.0, -50.0]));
    other.ref_rejected.mapv_inplace(|_| *probe.pick.one(&[-7.0, -2.0, -90.0]));
    let name = options.output();
    let before = losses(&probe.finite_output()?.output, options)?;
    let after = losses(&probe.call(&other)?, options)?;
    let allowed = 2.0 * probe.related(name);
    close(format_args!("with another reference, {name}"), &after, &before, &allowed)
}
