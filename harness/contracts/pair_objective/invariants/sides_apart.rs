//! What one side adds does not depend on the other.
//!
//! ### Claim
//! What moving the chosen side changes is the same wherever the rejected side is.
//!
//! ### Why it matters
//! NCA, BCO, SPPO and APO judge each completion by itself, so that likelihoods do not sink
//! together. A margin in their place brings back what they were made against.
//!
//! ### Does not hold for
//! The kinds that compare the sides: `orpo`, `simpo`, `sigmoid-norm`, `ipo-norm`, `apo-down`,
//! `exo`, `aot` and `aot-unpaired`.
//!
//! ### Bugs it has caught
//! A margin split in halves where BCO has a reward for each side.
//!
//! ### Example
//! Under `kind="bco-pair"`:
//! ```diff
//! -        half = (chosen_reward - rejected_reward) / 2
//! -        losses = -F.logsigmoid(half) - F.logsigmoid(half)
//! +        losses = -F.logsigmoid(chosen_reward) - F.logsigmoid(-rejected_reward)
//! ```

use super::{losses, moved};
use crate::pair_objective::{Kind, PairObjective, PairObjectiveCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::Aggregation,
    &["bco-one-margin", "sppo-of-the-difference", "apo-down-for-zero", "apo-of-the-difference"],
    check,
)
.under(|options| {
    matches!(options.kind, Kind::Nca | Kind::BcoPair | Kind::SppoHard | Kind::ApoZero)
});

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let (options, dtype) = (probe.options, probe.place.dtype);
    let name = options.output();
    let amounts = [&[-2.0, -8.0, -32.0], &[-1.0, -4.0, -16.0]];
    let [of_chosen, of_rejected] = amounts.map(|amounts| *probe.pick.one(amounts));
    let policy_chosen = moved(&probe.case.policy_chosen, dtype, |_| of_chosen)?;
    let policy_rejected = moved(&probe.case.policy_rejected, dtype, |_| of_rejected)?;
    let first = PairObjectiveCase { policy_chosen, ..probe.case.clone() };
    let second = PairObjectiveCase { policy_rejected, ..probe.case.clone() };
    let both = PairObjectiveCase { policy_chosen: first.policy_chosen.clone(), ..second.clone() };
    let neither = losses(&probe.finite_output()?.output, options)?;
    let mut allowed = probe.related(name);
    let mut of = |case: &PairObjectiveCase| {
        allowed += &probe.bounds_in(&probe.expected_of(case), name);
        losses(&probe.call(case)?, options)
    };
    let [first, second, both] = [of(&first)?, of(&second)?, of(&both)?];
    let what = format_args!(
        "with the rejected side moved by {of_rejected} and the chosen side by {of_chosen} more, \
         the change of {name}"
    );
    unchanged(what, &(both - second), &(first - neither), &allowed)
}
