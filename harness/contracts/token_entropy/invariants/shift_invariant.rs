//! A constant added to all logits of a position changes nothing.
//!
//! ### Claim
//! Adding one constant to all logits of a position changes no entropy.
//!
//! ### Why it matters
//! The level of the logits is not determined by training and drifts to hundreds. What depends on
//! it overflows, or is no entropy.
//!
//! ### Does not hold for
//! Constants that rounding would change.
//!
//! ### Bugs it has caught
//! exp without the maximum taken off; a softmax along another axis.
//!
//! ### Example
//! ```diff
//! -    log_probs = logits - logits.exp().sum(dim=-1, keepdim=True).log()
//! +    log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)
//! ```

use ndarray::Axis;

use crate::token_entropy::TokenEntropy;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenEntropy> = Rule::new(
    Pitfall::StabilityConstant,
    &["maximum-not-subtracted", "softmax-over-another-axis"],
    check,
);

fn check(probe: &mut Probe<'_, TokenEntropy>) -> Outcome {
    let before = probe.finite_output()?;
    let dtype = probe.place.dtype;
    let mut shifted = probe.case.clone();
    let mut moved = false;
    for mut logits in shifted.logits.lanes_mut(Axis(2)) {
        let amount = *probe.pick.one(&[1.0, -1.0, 4.0, -8.0, 16.0, 128.0, -256.0]);
        let exact = logits.iter().all(|logit| {
            let to = logit + amount;
            logit.is_infinite()
                || (dtype.round(to) == to && to - amount == *logit && to - logit == amount)
        });
        if exact {
            logits.mapv_inplace(|logit| logit + amount);
            moved = true;
        }
    }
    if !moved {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&shifted)?;
    let allowed =
        probe.related("entropy") + probe.bounds_in(&probe.expected_of(&shifted), "entropy");
    let what = "with a constant added to the logits of a position, entropy";
    close(what, &after.entropy, &before.output.entropy, &allowed)
}
