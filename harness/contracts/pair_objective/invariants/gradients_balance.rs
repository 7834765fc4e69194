//! What raises one side lowers the other by as much.
//!
//! ### Claim
//! The gradients of a pair sum to 0, each times its length where averages count.
//!
//! ### Why it matters
//! Only the difference of the sides counts in these losses. Where one side is detached or counted
//! twice, training moves the likelihood of both together, and the loss never shows it.
//!
//! ### Does not hold for
//! The kinds that look at a side alone, and single pairs of `aot-unpaired`, where all sum to 0.
//!
//! ### Bugs it has caught
//! A rejected side that was computed without gradient, with the reference's.
//!
//! ### Example
//! ```diff
//! -        margin = beta * (chosen - rejected.detach())
//! +        margin = beta * (chosen - rejected)
//! ```

use super::is_of_the_difference;
use crate::pair_objective::{Kind, PairObjective};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::GradientFlow,
    &["rejected-side-detached", "lengths-swapped", "one-length-for-both"],
    check,
)
.under(|options| is_of_the_difference(options.kind))
.needs_gradient();

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let returned = probe.gradient_output()?;
    let output = &returned.output;
    let (Some(chosen), Some(rejected)) = (&output.grad_policy_chosen, &output.grad_policy_rejected)
    else {
        return Err(Stop::Vacuous);
    };
    let (case, kind) = (probe.case, probe.options.kind);
    if chosen.dim() != case.policy_chosen.dim() || rejected.dim() != chosen.dim() {
        // The law `gradient` says so.
        return Err(Stop::Vacuous);
    }
    let expected = PairObjective::oracle_gradient(case, probe.options, probe.place.dtype);
    let bounds =
        ["grad_policy_chosen", "grad_policy_rejected"].map(|name| probe.bounds_in(&expected, name));
    let (mut sum, mut allowance) = (0.0, 0.0);
    for at in 0..chosen.len() {
        let lengths = match kind.averages() {
            true => [case.chosen_lengths[at], case.rejected_lengths[at]].map(|x| x as f64),
            false => [1.0, 1.0],
        };
        let found = [chosen[at] * lengths[0], rejected[at] * lengths[1]];
        let allowed = bounds[0][[at]] * lengths[0] + bounds[1][[at]] * lengths[1];
        sum += found[0] + found[1];
        allowance += allowed;
        if kind != Kind::AotUnpaired && (found[0] + found[1]).abs() > allowed {
            let [chosen, rejected] = pair(found[0], found[1]);
            broken!(
                "pair {at} has the gradients {chosen} and {rejected}, by its averages where those \
                 count: expected opposite ones ± {allowed:.1e}"
            );
        }
    }
    near("the sum of all gradients", sum, 0.0, allowance)
}
