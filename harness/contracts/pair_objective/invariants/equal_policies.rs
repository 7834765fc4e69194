//! A policy that is its reference has a loss that is known beforehand.
//!
//! ### Claim
//! With policy = reference: ln 2 (sigmoid-norm, aot), 1/(4β²), 2 ln 2 (nca, bco), 1/(2β²), 1 (apo).
//!
//! ### Why it matters
//! Every run starts there, and it is the one number that can be checked by eye in a log. A sign, a
//! target twice too far, or a term with the wrong weight shows in it.
//!
//! ### Does not hold for
//! `orpo` and `simpo`, which have no reference. `exo` starts at -ln 2 - ½·log(ε(1 - ε)).
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a: a loss of the wrong sign at the start.
//!
//! ### Example
//! Under `kind="nca"`:
//! ```diff
//! -        losses = -push - pull - F.logsigmoid(-rejected_reward)
//! +        losses = -push - 0.5 * pull - 0.5 * F.logsigmoid(-rejected_reward)
//! ```

use std::f64::consts::LN_2;

use super::{agreed, losses};
use crate::pair_objective::{Kind, PairObjective};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "ipo-target",
        "sppo-target",
        "nca-weights",
        "bco-rejected-side-left-out",
        "exo-chosen-share",
        "exo-cross-entropy",
        "apo-zero-rejected-side-left-out",
    ],
    check,
)
.under(|options| options.kind.has_reference());

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let options = probe.options;
    let agreed = agreed(probe.case);
    let found = losses(&probe.call(&agreed)?, options)?;
    let allowed = probe.bounds_in(&probe.expected_of(&agreed), options.output());
    let smoothing = options.label_smoothing;
    let known = match options.kind {
        Kind::SigmoidNorm | Kind::Aot | Kind::AotUnpaired => LN_2,
        Kind::IpoNorm => 0.25 / (options.beta * options.beta),
        Kind::Nca | Kind::BcoPair => 2.0 * LN_2,
        Kind::SppoHard => 0.5 / (options.beta * options.beta),
        Kind::ApoZero | Kind::ApoDown => 1.0,
        Kind::Exo => -LN_2 - 0.5 * (smoothing * (1.0 - smoothing)).ln(),
        Kind::Orpo | Kind::Simpo => return Err(Stop::Vacuous),
    };
    let what = format_args!("with the policy equal to the reference, {}", options.output());
    close(what, &found, &found.mapv(|_| known), &allowed)
}
