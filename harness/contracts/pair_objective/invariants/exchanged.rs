//! A pair and its exchange differ by what is compared.
//!
//! ### Claim
//! Exchanging sides adds (1 - 2ε)β, β (bco) or 2/β (squares) times the gap; apo-zero's sum to 2.
//!
//! ### Why it matters
//! log σ(z) - log σ(-z) = z, exactly, and squares of opposite numbers cancel: a relation of two
//! calls that no weight, target or scale of the wrong size survives.
//!
//! ### Does not hold for
//! `orpo`, `nca`, `apo-down` and `exo`, and `simpo` with `gamma` above 0.
//!
//! ### Bugs it has caught
//! β applied twice or not at all; smoothing without effect.
//!
//! ### Example
//! Under `gamma=0.0`:
//! ```diff
//! -        margin = beta * (chosen_reward - rejected_reward)
//! +        margin = beta * (chosen - rejected)
//! ```

use super::{losses, reduced};
use crate::pair_objective::{Kind, Options, PairObjective, PairObjectiveCase, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "aot-sorts-one-side",
        "bco-rejected-side-left-out",
        "apo-zero-sign",
        "apo-zero-rejected-side-left-out",
        "sppo-target",
        "ipo-target",
        "reference-not-subtracted",
    ],
    check,
)
.under(|options| factor(options).is_some() || options.kind == Kind::ApoZero);

/// By how many times the difference the loss changes.
fn factor(options: &Options) -> Option<f64> {
    let kept = 1.0 - 2.0 * options.label_smoothing;
    match options.kind {
        Kind::Simpo if options.gamma == 0.0 => Some(kept * options.beta),
        Kind::SigmoidNorm | Kind::Aot | Kind::AotUnpaired => Some(kept * options.beta),
        Kind::BcoPair => Some(options.beta),
        Kind::IpoNorm | Kind::SppoHard => Some(2.0 / options.beta),
        _ => None,
    }
}

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let (options, case) = (probe.options, probe.case);
    let exchanged = PairObjectiveCase {
        policy_chosen: case.policy_rejected.clone(),
        policy_rejected: case.policy_chosen.clone(),
        ref_chosen: case.ref_rejected.clone(),
        ref_rejected: case.ref_chosen.clone(),
        chosen_lengths: case.rejected_lengths.clone(),
        rejected_lengths: case.chosen_lengths.clone(),
    };
    let name = options.output();
    let returned = probe.finite_output()?;
    let before = losses(&returned.output, options)?;
    let after = losses(&probe.call(&exchanged)?, options)?;
    let allowed = probe.bounds(name) + probe.bounds_in(&probe.expected_of(&exchanged), name);
    match factor(options) {
        Some(factor) => {
            let gaps = oracle::differences(case, options.kind).into_iter();
            let expected = reduced(gaps.map(|gap| factor * gap).collect(), options);
            let what = format_args!("with the sides exchanged, the change of {name}");
            close(what, &(after - before), &expected, &allowed)
        }
        None => {
            let expected = after.mapv(|_| 2.0);
            let what = format_args!("with the sides exchanged, the sum of both {name}");
            close(what, &(after + before), &expected, &allowed)
        }
    }
}
