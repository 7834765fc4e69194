//! The less likely the chosen completion, the higher the loss; the rejected one, the lower.
//!
//! ### Claim
//! A lower chosen log-probability lowers no loss, and a lower rejected one raises none.
//!
//! ### Why it matters
//! It is what the loss is for. A side that is exchanged, or a sign, still gives a smooth curve that
//! goes down in training: away from what people chose.
//!
//! ### Does not hold for
//! Kinds with a target or a pull back: `ipo-norm`, `nca`, `sppo-hard`, `exo`, and smoothing. Of
//! `apo-down` only the rejected side.
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a: a step that prefers the rejected side.
//!
//! ### Example
//! ```diff
//! -        margin = beta * (rejected - chosen)
//! +        margin = beta * (chosen - rejected)
//! ```

use super::{falls, losses};
use crate::pair_objective::{Kind, PairObjective};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> =
    Rule::new(Pitfall::LogSpaceSign, &["sign-flipped", "sides-exchanged", "apo-zero-sign"], check)
        .under(|options| falls(options) || options.kind == Kind::ApoDown);

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let (options, dtype) = (probe.options, probe.place.dtype);
    let amount = *probe.pick.one(&[1.0, 4.0, 16.0]);
    let of_chosen = falls(options) && probe.pick.below(2) == 0;
    let mut lowered = probe.case.clone();
    let (leaf, field, sign) = match of_chosen {
        true => ("policy_chosen", &mut lowered.policy_chosen, 1.0),
        false => ("policy_rejected", &mut lowered.policy_rejected, -1.0),
    };
    field.mapv_inplace(|x| dtype.round(x - amount));
    if lowered == *probe.case {
        return Err(Stop::Vacuous);
    }
    let name = options.output();
    let before = losses(&probe.output()?.output, options)?;
    let after = losses(&probe.call(&lowered)?, options)?;
    let allowed = probe.bounds(name) + probe.bounds_in(&probe.expected_of(&lowered), name);
    for ((at, before), (after, allowed)) in before.indexed_iter().zip(after.iter().zip(&allowed)) {
        if sign * (after - before) < -*allowed {
            let index = index(&at);
            let [after, before] = pair(*after, *before);
            let way = if of_chosen { "less" } else { "more" };
            broken!(
                "with {leaf} lowered by {amount}, {name}{index} is {after}, before it was \
                 {before}: expected no {way}"
            );
        }
    }
    Ok(())
}
