//! A pair and its exchange differ by the margin.
//!
//! ### Claim
//! With chosen and rejected exchanged, the loss changes by (1 - 2ε)·βΔ; robust: by βΔ/(1 - 2ε).
//!
//! ### Why it matters
//! log σ(z) - log σ(-z) = z, exactly: a relation of two calls that holds whatever the margin, and
//! that no constant, weight or target of the wrong size survives.
//!
//! ### Does not hold for
//! `hinge` and `ipo`, and `margin` above 0.
//!
//! ### Bugs it has caught
//! β applied twice or not at all; smoothing without effect, as in TRL's sigmoid loss.
//!
//! ### Example
//! Under `label_smoothing=0.1`:
//! ```diff
//! -        losses = -right
//! +        losses = -(1 - label_smoothing) * right - label_smoothing * exchanged
//! ```

use super::{losses, reduced};
use crate::preference_loss::{Kind, PreferenceLoss, PreferenceLossCase, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "beta-not-applied",
        "label-smoothing-ignored",
        "label-smoothing-on-the-wrong-side",
        "robust-adds-the-other-side",
        "reference-ignored",
        "reference-added",
    ],
    check,
)
.under(|options| matches!(options.kind, Kind::Sigmoid | Kind::Robust) && options.margin == 0.0);

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let (options, case) = (probe.options, probe.case);
    let exchanged = PreferenceLossCase {
        policy_chosen: case.policy_rejected.clone(),
        policy_rejected: case.policy_chosen.clone(),
        ref_chosen: case.ref_rejected.clone(),
        ref_rejected: case.ref_chosen.clone(),
    };
    let name = options.output();
    let returned = probe.finite_output()?;
    let before = losses(&returned.output, options)?;
    let after = losses(&probe.call(&exchanged)?, options)?;
    let allowed = probe.bounds(name) + probe.bounds_in(&probe.expected_of(&exchanged), name);
    let kept = 1.0 - 2.0 * options.label_smoothing;
    let factor = if options.kind == Kind::Robust { 1.0 / kept } else { kept };
    let margins = oracle::logits(case, options).into_iter().map(|z| factor * z);
    let expected = reduced(margins.collect(), options);
    let what = format_args!("with chosen and rejected exchanged, the change of {name}");
    close(what, &(after - before), &expected, &allowed)
}
