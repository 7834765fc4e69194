//! A constant added to all logits of a token changes nothing.
//!
//! ### Claim
//! Adding one constant to all logits of a token, -200 too, changes neither loss nor entropy.
//!
//! ### Why it matters
//! Training does not determine the level of the logits, and it drifts to hundreds. Far below 0 a
//! maximum that was initialised with 0 leaves exponentials that are all 0.
//!
//! ### Does not hold for
//! Constants that rounding would change.
//!
//! ### Bugs it has caught
//! verl ced0c903d: a maximum that starts at 0. exp without the maximum taken off.
//!
//! ### Example
//! ```diff
//! -    log_probs = (logits.exp() / logits.exp().sum(dim=-1, keepdim=True)).log()
//! +    log_probs = logits.log_softmax(dim=-1)
//! ```

use ndarray::Axis;

use super::pairs;
use crate::entropy_bonus::EntropyBonus;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> = Rule::new(
    Pitfall::StabilityConstant,
    &["maximum-starts-at-zero", "maximum-not-subtracted"],
    check,
);

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    let before = probe.finite_output()?;
    let dtype = probe.place.dtype;
    let mut shifted = probe.case.clone();
    let mut moved = false;
    let down = probe.pick.below(2) == 0;
    let positions = shifted.logits.lanes_mut(Axis(2)).into_iter().zip(&probe.case.mask);
    for (mut logits, _) in positions.filter(|(_, kept)| **kept) {
        let any = *probe.pick.one(&[1.0, -1.0, 4.0, -8.0, 16.0, 128.0, -256.0]);
        let amount = if down { -200.0 } else { any };
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
    let expected = probe.expected_of(&shifted);
    for (name, before, after) in pairs(&before.output, &after, probe.options) {
        let allowed = probe.related(name) + probe.bounds_in(&expected, name);
        let what = format_args!("with a constant added to the logits of a token, {name}");
        near(what, after, before, allowed[[]])?;
    }
    Ok(())
}
