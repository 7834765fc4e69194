//! A constant added to all logits of a row changes nothing.
//!
//! ### Claim
//! Adding one constant to all logits of a row changes no probability.
//!
//! ### Why it matters
//! The level of the logits is not determined by training and drifts to hundreds. What depends on
//! it overflows; a filter that fills with a number instead of -inf depends on it too.
//!
//! ### Does not hold for
//! Constants that rounding would change.
//!
//! ### Bugs it has caught
//! exp without the maximum taken off; logits multiplied by the mask of a filter.
//!
//! ### Example
//! ```diff
//! -    weights = (filtered / late).exp()
//! -    return weights / weights.sum(dim=-1, keepdim=True)
//! +    return (filtered / late).softmax(dim=-1)
//! ```

use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::StabilityConstant,
    &["maximum-not-subtracted", "filter-fills-with-a-number", "softmax-over-the-rows"],
    check,
);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let before = probe.finite_output()?;
    let dtype = probe.place.dtype;
    let mut shifted = probe.case.clone();
    let mut moved = false;
    for mut logits in shifted.logits.rows_mut() {
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
    let allowed = probe.related("probs") + probe.bounds_in(&probe.expected_of(&shifted), "probs");
    let what = "with a constant added to the logits of a row, probs";
    close(what, &after.probs, &before.output.probs, &allowed)
}
