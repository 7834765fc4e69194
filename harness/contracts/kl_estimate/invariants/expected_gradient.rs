//! On average the gradient of k2 is that of the KL.
//!
//! ### Claim
//! Over an enumerated vocabulary the expected gradient by the policy's logits is that of KL(π‖ref).
//!
//! ### Why it matters
//! A penalty acts through its gradient alone. That of k1 is 0 on average, whatever the value says,
//! and that of k3 is the gradient of the other KL.
//!
//! ### Does not hold for
//! `gradient: value` of k1, k3 and abs, honest choices that are declared as such; k2 with a clamp,
//! unless the gradient is passed straight through.
//!
//! ### Bugs it has caught
//! trl #2277: k1 as a loss. NeMo-RL #2506, verl #2953, slime #1004, OpenRLHF #1101: k3 as a loss.
//!
//! ### Example
//! Under `gradient="k2"`:
//! ```diff
//! -        surrogate = log_ratio
//! +        surrogate = log_ratio**2 / 2
//! ```

use super::enumerated;
use crate::kl_estimate::{Estimator, Gradient, KlEstimate};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> =
    Rule::new(Pitfall::GradientFlow, &["k1-as-a-loss", "k3-gradient-of-the-reversed-kl"], check)
        .under(|options| {
            let free = options.log_ratio_clamp.is_none() && options.clamp.is_none();
            match options.gradient {
                Gradient::K2 => true,
                Gradient::Value => options.estimator == Estimator::K2 && free,
                Gradient::None => false,
            }
        })
        .needs_gradient();

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let vocabulary = enumerated(probe)?;
    let returned = probe.call_with(&vocabulary, true)?;
    let Some(gradient) = &returned.output.grad_log_probs else { return Err(Stop::Vacuous) };
    if gradient.dim() != vocabulary.log_probs.dim() {
        // The law `gradient` says so.
        return Err(Stop::Vacuous);
    }
    let expected = KlEstimate::oracle_gradient(&vocabulary, probe.options, probe.place.dtype);
    let bounds = probe.bounds_in(&expected, "grad_log_probs");
    let policy: Vec<f64> = vocabulary.log_probs.iter().map(|x| x.exp()).collect();
    let gaps = &vocabulary.log_probs - &vocabulary.ref_log_probs;
    // The derivative of log π(v) by logit u is 1[u = v] - π(u).
    let by_logit = |weights: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
        let weighted: Vec<f64> = weights.zip(&policy).map(|(g, p)| g * p).collect();
        let sum: f64 = weighted.iter().sum();
        weighted.iter().zip(&policy).map(|(own, p)| own - p * sum).collect()
    };
    let found = by_logit(&mut gradient.iter().copied());
    let exact = by_logit(&mut gaps.iter().copied());
    let error: f64 = policy.iter().zip(&bounds).map(|(p, bound)| p * bound).sum();
    for (token, (found, exact)) in found.iter().zip(&exact).enumerate() {
        let allowed = policy[token] * (bounds[[0, token]] + error);
        let what = format_args!(
            "over a vocabulary of {} the expected gradient by logit {token}",
            policy.len()
        );
        near(what, *found, *exact, allowed)?;
    }
    Ok(())
}
