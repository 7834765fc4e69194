//! A loss without a reference does not look at it.
//!
//! ### Claim
//! Other reference log-probabilities change no loss and no reward.
//!
//! ### Why it matters
//! ORPO and SimPO train without a reference model; what is passed in its place is zeros, or what
//! is left over from another loss.
//!
//! ### Does not hold for
//! Every kind but `orpo` and `simpo`.
//!
//! ### Bugs it has caught
//! The normalised DPO loss where SimPO is declared: both average over tokens.
//!
//! ### Example
//! ```diff
//! -    if kind == "orpo":
//! +    if kind in ("orpo", "simpo"):
//!          chosen, rejected = policy_chosen / chosen_lengths, policy_rejected / rejected_lengths
//! ```

use super::losses;
use crate::pair_objective::PairObjective;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws::compare::outputs;

pub(super) const RULE: Rule<PairObjective> =
    Rule::new(Pitfall::Configuration, &["reference-used", "rewards-with-the-reference"], check)
        .under(|options| !options.kind.has_reference());

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let mut other = probe.case.clone();
    other.ref_chosen.mapv_inplace(|_| *probe.pick.one(&[0.0, -1.0, -3.0, -50.0]));
    other.ref_rejected.mapv_inplace(|_| *probe.pick.one(&[-7.0, -2.0, -90.0]));
    let before = probe.finite_output()?;
    losses(&before.output, probe.options)?;
    let after = probe.call(&other)?;
    for ((name, before), (_, after)) in outputs(&*before.output).into_iter().zip(outputs(&after)) {
        let allowed = 2.0 * probe.related(name);
        let what = format_args!("with another reference, {name}");
        unchanged(what, &after.to_owned(), &before.to_owned(), &allowed)?;
    }
    Ok(())
}
