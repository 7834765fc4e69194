//! On average over the policy's own tokens the estimate is the KL.
//!
//! ### Claim
//! Over an enumerated vocabulary the expectation of k1 and of k3 is the exact KL(π‖ref).
//!
//! ### Why it matters
//! It is what the word estimator means. A wrong direction, a weight too many and a formula that is
//! right for small gaps only are all caught by one sum.
//!
//! ### Does not hold for
//! k2 and abs, which are biased; clamped log-ratios and results. The vocabulary is as long as a row
//! of the case, of two to eight tokens.
//!
//! ### Bugs it has caught
//! trlx: k3 of the other direction, whose expectation is no KL.
//!
//! ### Example
//! Under `estimator="k1"`:
//! ```diff
//! -        kl = log_probs.exp() * gap
//! +        kl = gap
//! ```

use super::enumerated;
use crate::kl_estimate::{Estimator, KlEstimate};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "k3-direction-reversed",
        "k1-direction-reversed",
        "estimators-counted-from-zero",
        "weighted-by-the-probability",
    ],
    check,
)
.under(|options| {
    matches!(options.estimator, Estimator::K1 | Estimator::K3)
        && options.log_ratio_clamp.is_none()
        && options.clamp.is_none()
});

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let vocabulary = enumerated(probe)?;
    let output = probe.call(&vocabulary)?;
    let bounds = probe.bounds_in(&probe.expected_of(&vocabulary), "kl");
    let (mut exact, mut found, mut allowed) = (0.0, 0.0, 0.0_f64);
    let mut magnitude = 0.0;
    for ((at, log_prob), reference) in
        vocabulary.log_probs.indexed_iter().zip(&vocabulary.ref_log_probs)
    {
        let probability = log_prob.exp();
        exact += probability * (log_prob - reference);
        magnitude += probability * (log_prob.abs() + reference.abs() + 1.0) + reference.exp();
        if probe.options.estimator == Estimator::K3 {
            // 0 but for the rounding of the inputs.
            exact += reference.exp() - probability;
        }
        found += probability * output.kl[at];
        allowed += probability * bounds[[at.0, at.1]];
    }
    // The two sums here round too, which counts where the component computes in f64 as well.
    allowed += f64::EPSILON * magnitude * vocabulary.log_probs.len() as f64;
    if apart(found, exact, allowed) {
        broken!(
            "over a vocabulary with policy {} and reference {} the expectation is {}, expected {} \
             ± {allowed:.1e}",
            list(&vocabulary.log_probs),
            list(&vocabulary.ref_log_probs),
            rounded(found),
            rounded(exact),
        );
    }
    Ok(())
}

/// The log-probabilities of a vocabulary for people.
fn list(log_probs: &ndarray::Array2<f64>) -> String {
    let numbers: Vec<String> = log_probs.iter().map(|x| rounded(*x)).collect();
    format!("[{}]", numbers.join(", "))
}
