//! A completion said twice counts as one.
//!
//! ### Claim
//! A side's log-probabilities and its length times the same number change no loss.
//!
//! ### Why it matters
//! These kinds average over tokens so that long completions weigh no more than short ones. On sums
//! the odds of ORPO are the likelihood, and the margin of IPO is that of the longer side.
//!
//! ### Does not hold for
//! The kinds of sums: `nca`, `bco-pair`, `sppo-hard`, `apo-zero`, `apo-down`, `exo` and `aot`.
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a: ORPO and IPO on summed log-probabilities.
//!
//! ### Example
//! ```diff
//!      if kind in ("orpo", "simpo"):
//! -        chosen, rejected = policy_chosen, policy_rejected
//! +        chosen, rejected = policy_chosen / chosen_lengths, policy_rejected / rejected_lengths
//! ```

use super::losses;
use crate::pair_objective::PairObjective;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::Aggregation,
    &[
        "odds-of-sums",
        "ipo-on-sums",
        "sums-for-averages",
        "reference-not-averaged",
        "lengths-swapped",
        "one-length-for-both",
        "sft-term-of-sums",
    ],
    check,
)
.under(|options| options.kind.averages());

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let (options, dtype) = (probe.options, probe.place.dtype);
    let times = *probe.pick.one(&[2_i64, 4, 3, 8]);
    let mut longer = probe.case.clone();
    let (policy, reference, lengths) = match probe.pick.below(2) {
        0 => (&mut longer.policy_chosen, &mut longer.ref_chosen, &mut longer.chosen_lengths),
        _ => (&mut longer.policy_rejected, &mut longer.ref_rejected, &mut longer.rejected_lengths),
    };
    for x in policy.iter_mut().chain(reference) {
        let larger = *x * times as f64;
        if dtype.round(larger) != larger || larger / times as f64 != *x {
            return Err(Stop::Vacuous);
        }
        *x = larger;
    }
    *lengths *= times;
    let name = options.output();
    let before = losses(&probe.finite_output()?.output, options)?;
    let after = losses(&probe.call(&longer)?, options)?;
    let allowed = probe.related(name) + probe.bounds_in(&probe.expected_of(&longer), name);
    let what = format_args!("with one side repeated {times} times, {name}");
    unchanged(what, &after, &before, &allowed)
}
