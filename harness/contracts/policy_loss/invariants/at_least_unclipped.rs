//! Clipping never makes the loss smaller.
//!
//! ### Claim
//! The loss is at least the one without clipping.
//!
//! ### Why it matters
//! The objective is a pessimistic bound: clipping may take gain away and never a loss. The other
//! way round large steps are rewarded without end.
//!
//! ### Does not hold for
//! Other objectives than `ppo-clip`; `dual_clip`, which bounds the loss from above; `beta` > 0.
//!
//! ### Bugs it has caught
//! The minimum of the paper's objective, kept when its sign was turned into a loss.
//!
//! ### Example
//! ```diff
//! -        losses = torch.min(-advantages * ratio, -advantages * clipped)
//! +        losses = torch.max(-advantages * ratio, -advantages * clipped)
//! ```

use super::weights;
use crate::policy_loss::{Advantages, Objective, PolicyLoss, Ratio};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> =
    Rule::new(Pitfall::ProbabilityRatio, &["minimum-for-maximum", "maximum-left-out"], check)
        .under(|options| {
            options.objective == Objective::PpoClip
                && options.ratio == Ratio::Token
                && options.dual().is_none()
                && options.log_ratio_clamp.is_none()
                && options.beta == 0.0
        });

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    let case = probe.case;
    let weights = weights(case, probe.options)?;
    let returned = probe.finite_output()?;
    let advantages = Advantages::of(case);
    let (mut unclipped, mut size) = (0.0, 0.0);
    for (at, weight) in weights.indexed_iter().filter(|(_, weight)| **weight > 0.0) {
        let ratio = (case.log_probs[at] - case.old_log_probs[at]).exp();
        let term = weight * advantages.at(at.0, at.1) * ratio;
        unclipped -= term;
        size += term.abs();
    }
    // The sum here is made of larger terms than the loss is.
    let allowed = probe.bounds("loss")[[]] + 1e-12 * size;
    let loss = returned.output.loss[()];
    if loss < unclipped - allowed {
        broken!("loss is {}, but without clipping {}", rounded(loss), rounded(unclipped));
    }
    Ok(())
}
