//! A step raises the chosen completion and lowers the rejected one.
//!
//! ### Claim
//! The gradient by the chosen side is at most 0, that by the rejected side at least 0.
//!
//! ### Why it matters
//! A loss may have the right value and push the wrong way: a side that is detached, counted twice
//! or added back. Training then unlearns what people chose, and the loss in the log never shows it.
//!
//! ### Does not hold for
//! Smoothing. `ipo-norm`, `nca`, `sppo-hard` and `exo` (ε below ½) are judged where the policy is
//! the reference only, and of `apo-down` the rejected side.
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a: the sign of ORPO's step.
//!
//! ### Example
//! Under `kind="orpo"`:
//! ```diff
//! -        losses = -chosen + beta * F.logsigmoid(log_odds(chosen) - log_odds(rejected))
//! +        losses = -chosen - beta * F.logsigmoid(log_odds(chosen) - log_odds(rejected))
//! ```

use ndarray::Array1;

use super::{agreed, falls};
use crate::pair_objective::{Kind, Options, PairObjective};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::GradientFlow,
    &["sign-flipped", "sides-exchanged", "gradient-reversed"],
    check,
)
.under(|options| falls(options) || falls_at_the_start(options) || options.kind == Kind::ApoDown)
.needs_gradient();

/// Whether the signs are known where the policy is the reference, and only there.
fn falls_at_the_start(options: &Options) -> bool {
    match options.kind {
        Kind::IpoNorm | Kind::Nca | Kind::SppoHard => true,
        Kind::Exo => options.label_smoothing < 0.5,
        _ => false,
    }
}

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let options = probe.options;
    let own = probe.case.clone();
    let (case, output) = if falls_at_the_start(options) {
        let agreed = agreed(&own);
        let output = probe.call_with(&agreed, true)?.output;
        (agreed, output)
    } else {
        let output = (*probe.gradient_output()?.output).clone();
        (own, output)
    };
    let expected = PairObjective::oracle_gradient(&case, options, probe.place.dtype);
    let mut checked = false;
    for (name, gradient, sign) in [
        ("grad_policy_chosen", &output.grad_policy_chosen, -1.0),
        ("grad_policy_rejected", &output.grad_policy_rejected, 1.0),
    ] {
        let Some(gradient) = gradient else { continue };
        if sign < 0.0 && options.kind == Kind::ApoDown || gradient.len() != case.ref_chosen.len() {
            // Of another shape: the law `gradient` says so.
            continue;
        }
        checked = true;
        let bounds: Array1<f64> = probe.bounds_in(&expected, name).iter().copied().collect();
        for (at, (found, allowed)) in gradient.iter().zip(&bounds).enumerate() {
            if sign * found < -*allowed {
                let (bound, found) = (if sign < 0.0 { "most" } else { "least" }, rounded(*found));
                broken!("{name}[{at}] is {found}, expected at {bound} 0 ± {allowed:.1e}");
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
