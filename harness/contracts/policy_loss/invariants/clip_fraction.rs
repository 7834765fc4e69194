//! The clip fraction counts the tokens that clipping stops.
//!
//! ### Claim
//! `clip_fraction` is the share of tokens with (A > 0, ratio above) or (A < 0, ratio below).
//!
//! ### Why it matters
//! It is the first number people look at when a step size is chosen. Counted on the wrong side it
//! says that nothing is clipped when everything is.
//!
//! ### Does not hold for
//! Other objectives than `ppo-clip`, shared ratios, and components that do not give it.
//!
//! ### Bugs it has caught
//! trl #3145: counted exactly the others. trl #3175: both sides whatever the sign. verl #972:
//! compared after the minimum, always 0.
//!
//! ### Example
//! ```diff
//! -    above = ratio > 1 + clip_high
//! -    below = ratio < 1 - clip_low
//! +    above = (ratio > 1 + clip_high) & (advantages > 0)
//! +    below = (ratio < 1 - clip_low) & (advantages < 0)
//! ```

use crate::policy_loss::{Advantages, PolicyLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::ProbabilityRatio,
    &[
        "clip-fraction-counts-the-unclipped",
        "clip-fraction-ignores-the-sign",
        "clip-fraction-after-the-minimum",
        "clip-fraction-counts-zero-advantages",
        "clip-fraction-counts-the-dual-clip",
        "clip-fraction-diluted-by-padding",
    ],
    check,
)
.under(|options| options.counts_clipped());

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    let case = probe.case;
    let returned = probe.output()?;
    let Some(found) = &returned.output.clip_fraction else { return Err(Stop::Vacuous) };
    let advantages = Advantages::of(case);
    let (lo, hi) = probe.options.bounds();
    let limit = probe.options.log_ratio_clamp.unwrap_or(f64::INFINITY);
    let (mut tokens, mut clipped) = (0.0, 0.0);
    for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        let ratio = (case.log_probs[at] - case.old_log_probs[at]).clamp(-limit, limit).exp();
        let a = advantages.at(at.0, at.1);
        tokens += 1.0;
        clipped += f64::from((a > 0.0 && ratio > hi) || (a < 0.0 && ratio < lo));
    }
    if tokens == 0.0 {
        return Err(Stop::Vacuous);
    }
    // Twice: a token that is too near a bound to tell is half a token to the oracle.
    let allowed = 2.0 * probe.bounds("clip_fraction")[[]];
    if apart(found[()], clipped / tokens, allowed) {
        broken!(
            "clip_fraction is {}, but {clipped} of {tokens} tokens are clipped",
            rounded(found[()])
        );
    }
    Ok(())
}
