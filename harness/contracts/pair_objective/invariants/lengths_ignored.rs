//! Where sums count, lengths do not.
//!
//! ### Claim
//! Other lengths change no loss and no reward.
//!
//! ### Why it matters
//! The derivations of these kinds are about whole completions. An average that is left over from
//! another loss makes β mean something else for every length.
//!
//! ### Does not hold for
//! `orpo`, `simpo`, `sigmoid-norm` and `ipo-norm`, which average over tokens.
//!
//! ### Bugs it has caught
//! LLaMA-Factory 52d402e2a, the other way round: sums where averages are declared.
//!
//! ### Example
//! Under `kind="bco-pair"`:
//! ```diff
//! -        chosen = (policy_chosen - ref_chosen) / chosen_lengths
//! -        rejected = (policy_rejected - ref_rejected) / rejected_lengths
//! +        chosen, rejected = policy_chosen - ref_chosen, policy_rejected - ref_rejected
//! ```

use super::losses;
use crate::pair_objective::PairObjective;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws::compare::outputs;

pub(super) const RULE: Rule<PairObjective> =
    Rule::new(Pitfall::Aggregation, &["averages-for-sums", "rewards-of-averages"], check)
        .under(|options| !options.kind.averages());

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
    let mut other = probe.case.clone();
    for lengths in [&mut other.chosen_lengths, &mut other.rejected_lengths] {
        lengths.mapv_inplace(|_| *probe.pick.one(&[1, 2, 5, 30]));
    }
    let before = probe.finite_output()?;
    losses(&before.output, probe.options)?;
    let after = probe.call(&other)?;
    for ((name, before), (_, after)) in outputs(&*before.output).into_iter().zip(outputs(&after)) {
        let allowed = 2.0 * probe.related(name);
        let what = format_args!("with other lengths, {name}");
        unchanged(what, &after.to_owned(), &before.to_owned(), &allowed)?;
    }
    Ok(())
}
