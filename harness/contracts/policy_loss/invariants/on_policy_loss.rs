//! On the policy the loss is the aggregated advantage.
//!
//! ### Claim
//! Where all policies are one, the loss is the aggregate of -A.
//!
//! ### Why it matters
//! It is the first step of every run, and the one number of a loss that is checked by hand: no
//! clipping, no divergence, only the mask and the sum.
//!
//! ### Does not hold for
//! `reinforce` and `cispo`, whose value there is that of -A·log_probs.
//!
//! ### Bugs it has caught
//! unsloth-zoo #870: a sum of exponentials, T on the policy, stood for a ratio of 1. trl #2881:
//! the mean of means where the token mean was promised.
//!
//! ### Example
//! ```diff
//!      if aggregate == "token-mean":
//! -        return (values.sum(1) / lengths.clamp(min=1)).mean()
//! +        return values.sum() / lengths.sum().clamp(min=1)
//! ```

use super::{loss_bound, on_policy, weights};
use crate::policy_loss::{Advantages, Objective, PolicyLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> = Rule::new(
    Pitfall::Aggregation,
    &[
        "objective-sign-flipped",
        "sum-of-exponentials-as-ratio",
        "sequence-mean-called-token-mean",
        "token-sum-divided-by-length",
        "token-mean-divided-twice",
        "tokens-and-rows-summed",
        "norm-by-another-length",
        "norm-not-by-rows",
        "denominator-counts-dropped-tokens",
        "advantages-cross-rows-when-square",
        "advantages-passed-as-mask",
        "advantages-normalised-again",
        "advantages-without-their-sign",
    ],
    check,
)
.under(|options| options.objective == Objective::PpoClip && options.kl_has_a_minimum());

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    let weights = weights(probe.case, probe.options)?;
    let (lo, hi) = probe.options.bounds();
    let case = on_policy(probe.case);
    let output = probe.call(&case)?;
    let advantages = Advantages::of(&case);
    let kept = weights.indexed_iter().filter(|(_, weight)| **weight > 0.0);
    let expected: f64 = kept.map(|(at, weight)| -weight * advantages.at(at.0, at.1)).sum::<f64>();
    assert!(lo <= 1.0 && hi >= 1.0);
    let allowed = loss_bound(probe, &probe.expected_of(&case));
    if apart(output.loss[()], expected, allowed) {
        let [found, expected] = pair(output.loss[()], expected);
        broken!(
            "where all policies are one, loss is {found}, but the advantages add up to \
             {expected} ± {allowed:.1e}"
        );
    }
    Ok(())
}
