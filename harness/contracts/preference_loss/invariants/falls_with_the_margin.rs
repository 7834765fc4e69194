//! The more the policy prefers the chosen completion, the lower the loss.
//!
//! ### Claim
//! Raising the chosen completion's log-probability raises no loss.
//!
//! ### Why it matters
//! It is what the loss is for. A side that is exchanged, or a sign, still gives a smooth curve that
//! goes down in training: away from what people chose.
//!
//! ### Does not hold for
//! `ipo`, which has a target, and `sigmoid` with smoothing, which has one too.
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a: a step that prefers the rejected side.
//!
//! ### Example
//! ```diff
//! -    margins = policy_rejected - policy_chosen
//! -    if not reference_free:
//! -        margins = margins - (ref_rejected - ref_chosen)
//! +    margins = policy_chosen - policy_rejected
//! +    if not reference_free:
//! +        margins = margins - (ref_chosen - ref_rejected)
//! ```

use super::{falls, losses};
use crate::preference_loss::PreferenceLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> = Rule::new(
    Pitfall::LogSpaceSign,
    &["sign-flipped", "chosen-and-rejected-inputs-swapped"],
    check,
)
.under(falls);

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let (options, dtype) = (probe.options, probe.place.dtype);
    let amount = *probe.pick.one(&[1.0, 4.0, 16.0]);
    let mut raised = probe.case.clone();
    raised.policy_chosen.mapv_inplace(|x| dtype.round(x + amount));
    if raised.policy_chosen == probe.case.policy_chosen {
        return Err(Stop::Vacuous);
    }
    let name = options.output();
    let before = losses(&probe.output()?.output, options)?;
    let after = losses(&probe.call(&raised)?, options)?;
    let allowed = probe.bounds(name) + probe.bounds_in(&probe.expected_of(&raised), name);
    for ((at, before), (after, allowed)) in before.indexed_iter().zip(after.iter().zip(&allowed)) {
        if after - before > *allowed {
            let index = index(&at);
            let [after, before] = pair(*after, *before);
            broken!(
                "with policy_chosen raised by {amount}, {name}{index} is {after}, before it was \
                 {before}: expected no more"
            );
        }
    }
    Ok(())
}
