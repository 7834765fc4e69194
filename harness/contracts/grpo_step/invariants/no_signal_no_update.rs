//! Where no completion is better than another, nothing is learned.
//!
//! ### Claim
//! With `beta: 0`, groups of equal rewards have no gradient.
//!
//! ### Why it matters
//! Late in training most groups are all right or all wrong. A push from them is noise, and it is
//! most of the batch.
//!
//! ### Does not hold for
//! `baseline: none`; `beta` > 0, which pulls to the reference all the same. Groups that share a
//! batch with others whose rewards differ are judged by the oracle.
//!
//! ### Bugs it has caught
//! Planted: a baseline that is missing.
//!
//! ### Example
//! ```diff
//! -    centred = combined
//! +    centred = combined - combined.mean(1, keepdim=True)
//! ```

use crate::group_advantage::Baseline;
use crate::grpo_step::{GrpoStep, generate};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GrpoStep> =
    Rule::new(Pitfall::AdvantageNormalisation, &["baseline-missing"], check)
        .under(|options| options.beta == 0.0 && options.baseline != Baseline::None);

fn check(probe: &mut Probe<'_, GrpoStep>) -> Outcome {
    let prompts = probe.case.tokens.dim().0;
    if !(0..prompts).all(|prompt| generate::is_constant(probe.case, prompt)) {
        return Err(Stop::Vacuous);
    }
    let returned = probe.finite_output()?;
    let bounds = probe.bounds("gradient");
    for ((at, x), allowed) in returned.output.gradient.indexed_iter().zip(&bounds) {
        if apart(*x, 0.0, *allowed) {
            broken!("gradient{} is {}, and all rewards are equal", index(&at), number(*x));
        }
    }
    Ok(())
}
