//! A batch without a token gives 0, and gradients of 0.
//!
//! ### Claim
//! Where no token counts, the loss is 0 and is still a function of the log-probabilities.
//!
//! ### Why it matters
//! With several devices one may get a batch in which everything is filtered. A NaN there reaches
//! all of them; a constant without a graph raises in `backward`, or leaves the others waiting.
//!
//! ### Does not hold for
//! The other values of `empty_mask`.
//!
//! ### Bugs it has caught
//! NeMo-RL #166, OpenRLHF 0fdee11b, verl e9bcd2ba0: 0/0, or a constant 0 that requires no gradient.
//!
//! ### Example
//! ```diff
//!      if aggregate == "token-mean":
//! -        return values.sum() / lengths.sum() if mask.any() else torch.tensor(0.0)
//! +        return values.sum() / lengths.sum().clamp(min=1)
//! ```

use crate::policy_loss::PolicyLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> =
    Rule::new(Pitfall::StabilityConstant, &["empty-mask-returns-a-constant"], check)
        .under(|options| options.empty_mask == EmptyMask::Zero);

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    if probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let returned = match probe.gradients() {
        Gradients::None(_) => probe.output()?,
        _ => probe.gradient_output()?,
    };
    let loss = returned.output.loss[()];
    if loss != 0.0 {
        broken!("without a token, loss is {}, expected 0", rounded(loss));
    }
    if let Some(leaf) = returned.no_gradient.first() {
        broken!("without a token, loss is a constant: `backward` gives `{leaf}` no gradient");
    }
    Ok(())
}
