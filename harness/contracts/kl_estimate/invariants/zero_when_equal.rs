//! Where policy and reference agree, the KL is zero.
//!
//! ### Claim
//! Where the reference equals the policy, every estimate is 0.
//!
//! ### Why it matters
//! Training starts there. A KL that starts elsewhere is a constant, a bias of the reward, or the
//! first sign that policy and reference are scored in different ways.
//!
//! ### Does not hold for
//! Nothing: it holds for every estimator and every clamp.
//!
//! ### Bugs it has caught
//! k3 without its -1; slime #2114: a reward added to the tensor of the KL.

use super::super::{KlEstimate, KlEstimateCase};
use crate::contract::invariant::Rule;
use crate::contract::probe::broken;
use crate::contract::probe::{Outcome, Probe};
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::apart;
use crate::value::text::rounded;

pub(super) const RULE: Rule<KlEstimate> = Rule::new(
    Pitfall::LogSpaceSign,
    &["minus-one-missing", "kl-tensor-reused-in-place", "ratio-of-probabilities"],
    check,
);

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let log_probs = probe.case.log_probs.clone();
    let equal = KlEstimateCase { ref_log_probs: log_probs.clone(), log_probs };
    let output = probe.call(&equal)?;
    let bounds = probe.bounds_in(&probe.expected_of(&equal), "kl");
    for (((row, column), found), allowed) in output.kl.indexed_iter().zip(&bounds) {
        if apart(*found, 0.0, *allowed) {
            broken!(
                "with the reference equal to the policy, kl[{row}, {column}] is {}, expected 0 ± \
                 {allowed:.1e}",
                rounded(*found)
            );
        }
    }
    Ok(())
}
