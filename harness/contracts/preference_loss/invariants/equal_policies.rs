//! A policy that is its reference has a loss that everybody knows.
//!
//! ### Claim
//! Where policy and reference agree the loss is ln 2 (sigmoid, robust), 1 (hinge) or 1/(4β²) (ipo).
//!
//! ### Why it matters
//! Every run starts there, so it is the one number that can be checked by eye in a log. It shows a
//! sign, a target, a weight that does not sum to 1, and a reference that has no part in the loss.
//!
//! ### Does not hold for
//! `margin` above 0. With `reference_free` both sides of the policy agree instead.
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a: a loss of -ln 2 at the start.
//!
//! ### Example
//! Under `kind="ipo"`:
//! ```diff
//! -        losses = (margins - 1 / beta) ** 2
//! +        losses = (margins - 1 / (2 * beta)) ** 2
//! ```

use super::losses;
use crate::preference_loss::{Kind, PreferenceLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> = Rule::new(
    Pitfall::LogSpaceSign,
    &["sign-flipped", "ipo-target-doubled", "reference-ignored", "sum-for-the-mean"],
    check,
)
.under(|options| options.margin == 0.0);

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let options = probe.options;
    let mut agreed = probe.case.clone();
    if options.reference_free {
        agreed.policy_rejected = agreed.policy_chosen.clone();
    } else {
        agreed.policy_chosen = agreed.ref_chosen.clone();
        agreed.policy_rejected = agreed.ref_rejected.clone();
    }
    let found = losses(&probe.call(&agreed)?, options)?;
    let allowed = probe.bounds_in(&probe.expected_of(&agreed), options.output());
    let known = match options.kind {
        Kind::Sigmoid | Kind::Robust => std::f64::consts::LN_2,
        Kind::Hinge => 1.0,
        Kind::Ipo => 0.25 / (options.beta * options.beta),
    };
    let what = format_args!("with the policy equal to the reference, {}", options.output());
    close(what, &found, &found.mapv(|_| known), &allowed)
}
