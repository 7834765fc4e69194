//! A batch without a token gives 0, and gradients of 0.
//!
//! ### Claim
//! Where no token counts, loss and entropy are 0 and are still functions of the logits.
//!
//! ### Why it matters
//! With several devices one may get a batch in which everything is filtered. A NaN there reaches
//! all of them, through a term that is a hundredth of the loss.
//!
//! ### Does not hold for
//! The other values of `empty_mask`.
//!
//! ### Bugs it has caught
//! NeMo-RL #166, verl e9bcd2ba0: 0/0.
//!
//! ### Example
//! ```diff
//! -        entropy = entropies.sum() / lengths.sum()
//! +        entropy = entropies.sum() / lengths.sum().clamp(min=1)
//! ```

use super::given;
use crate::entropy_bonus::EntropyBonus;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> =
    Rule::new(Pitfall::StabilityConstant, &["empty-mask-gives-nan"], check)
        .under(|options| options.empty_mask == EmptyMask::Zero);

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    if probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let returned = match probe.gradients() {
        Gradients::None(_) => probe.output()?,
        _ => probe.gradient_output()?,
    };
    for (name, found, _) in given(&returned.output, probe.options) {
        if found != 0.0 {
            broken!("without a token, {name} is {}, expected 0", rounded(found));
        }
    }
    if let Some(leaf) = returned.no_gradient.first() {
        broken!("without a token, it is a constant: `backward` gives `{leaf}` no gradient");
    }
    Ok(())
}
