//! No loss is negative, and those that are probabilities end at 2.
//!
//! ### Claim
//! Every loss is at least 0, and with `apo-zero` and `apo-down` at most 2.
//!
//! ### Why it matters
//! All are logarithms of probabilities, squares, divergences or probabilities. One below 0 has a
//! sign or a term too few, and can often be lowered without end.
//!
//! ### Does not hold for
//! Nothing: it holds for every kind.
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
use crate::pair_objective::{Kind, PairObjective};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::LogSpaceSign,
    &["sign-flipped", "exo-without-the-target", "apo-down-sign"],
    check,
);

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let returned = probe.output()?;
    let name = probe.options.output();
    let most = match probe.options.kind {
        Kind::ApoZero | Kind::ApoDown => 2.0,
        _ => f64::INFINITY,
    };
    let found = losses(&returned.output, probe.options)?;
    let bounds = probe.bounds(name);
    for ((at, found), allowed) in found.indexed_iter().zip(&bounds) {
        let index = index(&at);
        if *found < -allowed {
            broken!("{name}{index} is {}, expected at least 0 - {allowed:.1e}", rounded(*found));
        }
        if *found > most + allowed {
            broken!("{name}{index} is {}, expected at most 2 + {allowed:.1e}", rounded(*found));
        }
    }
    Ok(())
}
