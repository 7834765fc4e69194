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
//!
//! ### Example
//! ```diff
//! -        kl = torch.exp(-gap) + gap
//! +        kl = torch.expm1(-gap) + gap
//! ```

use crate::kl_estimate::{KlEstimate, KlEstimateCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> = Rule::new(
    Pitfall::LogSpaceSign,
    &["minus-one-missing", "kl-tensor-reused-in-place", "ratio-of-probabilities"],
    check,
);

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let log_probs = probe.case.log_probs.clone();
    let equal = KlEstimateCase { ref_log_probs: log_probs.clone(), log_probs };
    let output = probe.call(&equal)?;
    let allowed = probe.bounds_in(&probe.expected_of(&equal), "kl");
    let zero = output.kl.mapv(|_| 0.0);
    close("with the reference equal to the policy, kl", &output.kl, &zero, &allowed)
}
