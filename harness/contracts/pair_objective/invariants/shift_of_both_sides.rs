//! Where the sides are compared, only their difference counts.
//!
//! ### Claim
//! Moving the policy's log-probabilities of both sides alike (averages: per token) changes no loss.
//!
//! ### Why it matters
//! These losses are blind to the likelihood of both sides together. One that is not pulls all of
//! it up or down, which looks like learning for a while.
//!
//! ### Does not hold for
//! `orpo`, `nca`, `bco-pair`, `sppo-hard`, `apo-zero` and `apo-down`, which look at a side alone.
//!
//! ### Bugs it has caught
//! Lengths of the other side: per token the sides then move apart.
//!
//! ### Example
//! ```diff
//! -        chosen, rejected = policy_chosen / chosen_lengths, policy_rejected / chosen_lengths
//! +        chosen, rejected = policy_chosen / chosen_lengths, policy_rejected / rejected_lengths
//! ```

use ndarray::Array1;

use super::{is_of_the_difference, losses, moved};
use crate::pair_objective::PairObjective;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> =
    Rule::new(Pitfall::ProbabilityRatio, &["lengths-swapped", "one-length-for-both"], check)
        .under(|options| is_of_the_difference(options.kind));

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let (options, dtype) = (probe.options, probe.place.dtype);
    let amount = *probe.pick.one(&[-1.0, -2.0, -16.0, -64.0]);
    let mut shifted = probe.case.clone();
    let by = |lengths: &Array1<i64>, at: usize| match options.kind.averages() {
        true => amount * lengths[at] as f64,
        false => amount,
    };
    let case = probe.case;
    shifted.policy_chosen = moved(&case.policy_chosen, dtype, |at| by(&case.chosen_lengths, at))?;
    shifted.policy_rejected =
        moved(&case.policy_rejected, dtype, |at| by(&case.rejected_lengths, at))?;
    let name = options.output();
    let before = losses(&probe.finite_output()?.output, options)?;
    let after = losses(&probe.call(&shifted)?, options)?;
    let allowed = probe.related(name) + probe.bounds_in(&probe.expected_of(&shifted), name);
    let what = format_args!("with {amount} added to both sides of the policy, {name}");
    unchanged(what, &after, &before, &allowed)
}
