//! No loss is negative.
//!
//! ### Claim
//! A loss by sigmoid, hinge or ipo is at least 0.
//!
//! ### Why it matters
//! A negative one is a logarithm with the wrong sign, or a hinge that goes on for ever: it can be
//! lowered without end by pushing the rejected completion down.
//!
//! ### Does not hold for
//! `kind: robust` with smoothing, which takes the loss of the exchanged pair off.
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a: + log σ for - log σ.
//!
//! ### Example
//! ```diff
//! -        losses = (1 - label_smoothing) * right + label_smoothing * exchanged
//! +        losses = -(1 - label_smoothing) * right - label_smoothing * exchanged
//! ```

use super::losses;
use crate::preference_loss::{Kind, PreferenceLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> =
    Rule::new(Pitfall::LogSpaceSign, &["sign-flipped", "hinge-not-clamped"], check)
        .under(|options| options.kind != Kind::Robust || options.label_smoothing == 0.0);

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let returned = probe.output()?;
    let name = probe.options.output();
    let found = losses(&returned.output, probe.options)?;
    let bounds = probe.bounds(name);
    for ((at, found), allowed) in found.indexed_iter().zip(&bounds) {
        if *found < -allowed {
            let index = index(&at);
            broken!("{name}{index} is {}, expected at least 0 - {allowed:.1e}", rounded(*found));
        }
    }
    Ok(())
}
