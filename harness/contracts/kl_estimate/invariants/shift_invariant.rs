//! Only the difference counts.
//!
//! ### Claim
//! Adding one number to a token's log-probability under both policies changes nothing.
//!
//! ### Why it matters
//! An estimate is a function of the ratio alone. What depends on how likely the token is in itself
//! weights it twice, as sampling has weighted it already, or loses the digits of rare tokens.
//!
//! ### Does not hold for
//! Numbers that rounding would change.
//!
//! ### Bugs it has caught
//! p·log(p/q) on samples; OpenRLHF #620: rounding before the subtraction; exp(ref)/exp(policy).
//!
//! ### Example
//! ```diff
//! -        kl = ref_log_probs.exp() / log_probs.exp() - 1 + gap
//! +        kl = torch.expm1(-gap) + gap
//! ```

use crate::kl_estimate::KlEstimate;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> = Rule::new(
    Pitfall::ProbabilityRatio,
    &["weighted-by-the-probability", "kl-in-half-precision", "ratio-of-probabilities"],
    check,
);

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let dtype = probe.place.dtype;
    let mut shifted = probe.case.clone();
    let mut moved = false;
    for (a, b) in shifted.log_probs.iter_mut().zip(&mut shifted.ref_log_probs) {
        let amount = *probe.pick.one(&[-1.0, -2.0, -16.0, -128.0, -256.0]);
        let (to, reference) = (*a + amount, *b + amount);
        let exact = dtype.round(to) == to && dtype.round(reference) == reference;
        if exact && to - reference == *a - *b && to.abs().max(reference.abs()) <= 400.0 {
            (*a, *b) = (to, reference);
            moved = true;
        }
    }
    if !moved {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let after = probe.call(&shifted)?;
    let allowed = 2.0 * probe.related("kl");
    let what = "with both log-probabilities of a token moved alike, kl";
    close(what, &after.kl, &before.output.kl, &allowed)
}
