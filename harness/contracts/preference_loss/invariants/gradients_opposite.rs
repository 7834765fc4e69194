//! What raises the chosen completion lowers the rejected one.
//!
//! ### Claim
//! The gradients by the two sides are opposite, and that by the chosen one is not positive.
//!
//! ### Why it matters
//! The loss is a function of the margin. Where one side is detached or counted twice, training
//! moves the likelihood of both sides together, and the value of the loss never shows it.
//!
//! ### Does not hold for
//! The sign: `ipo`, and `sigmoid` with smoothing, push back beyond their target.
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a: the sign. A rejected side that was computed without gradient.
//!
//! ### Example
//! ```diff
//! -    margins = policy_chosen - policy_rejected.detach()
//! +    margins = policy_chosen - policy_rejected
//! ```

use super::falls;
use crate::preference_loss::PreferenceLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> =
    Rule::new(Pitfall::GradientFlow, &["rejected-side-detached", "sign-flipped"], check)
        .needs_gradient();

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let returned = probe.gradient_output()?;
    let output = &returned.output;
    let (Some(chosen), Some(rejected)) = (&output.grad_policy_chosen, &output.grad_policy_rejected)
    else {
        return Err(Stop::Vacuous);
    };
    if chosen.dim() != probe.case.policy_chosen.dim() || rejected.dim() != chosen.dim() {
        // The law `gradient` says so.
        return Err(Stop::Vacuous);
    }
    let expected = PreferenceLoss::oracle_gradient(probe.case, probe.options, probe.place.dtype);
    let bounds = probe.bounds_in(&expected, "grad_policy_chosen");
    for (at, (chosen, rejected)) in chosen.iter().zip(rejected).enumerate() {
        let allowed = 2.0 * bounds[[at]];
        if (chosen + rejected).abs() > allowed {
            let [chosen, rejected] = pair(*chosen, *rejected);
            broken!(
                "pair {at} has the gradients {chosen} and {rejected}, expected opposite ones ± \
                 {allowed:.1e}"
            );
        }
        if falls(probe.options) && *chosen > allowed {
            broken!("grad_policy_chosen[{at}] is {chosen:.4}, expected at most 0 + {allowed:.1e}");
        }
    }
    Ok(())
}
