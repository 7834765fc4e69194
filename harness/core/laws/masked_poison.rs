//! What stands under the mask is nobody's business.
//!
//! ### Claim
//! Overwriting what stands under the mask changes nothing at unmasked tokens.
//!
//! ### Why it matters
//! Pads, prompts and tool output hold whatever was in the buffer. A result that depends on it
//! trains on noise, and does so only in batches with rows of unequal length.
//!
//! ### Does not hold for
//! NaN and infinities under the mask where `masked_values: finite` is declared.
//!
//! ### Bugs it has caught
//! trl #5594: masked after the arithmetic, so that NaN survives times 0. trl #7024 and slime #1372:
//! rewards of pads in the return.
//!
//! ### Example
//! In `token-rewards`, under `masked_values="any"`:
//! ```diff
//! -    kl = (log_probs - ref_log_probs) * mask
//! +    kl = torch.where(mask, log_probs - ref_log_probs, 0.0)
//! ```

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::outcome::{Outcome, Stop};
use crate::contract::probe::Probe;
use crate::contract::rows::Masked;
use crate::contract::stage::Pitfall;
use crate::laws::compare::unmasked_difference;

/// The law, for the contract `C`.
pub fn law<C: Masked>() -> Invariant<C> {
    let rule = Rule::new(Pitfall::MaskingAlignment, &[], check::<C>);
    Invariant::own("masked-poison", include_str!("masked_poison.rs"), rule)
}

fn check<C: Masked>(probe: &mut Probe<'_, C>) -> Outcome {
    if C::mask(probe.case).iter().all(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let poisoned = C::poisoned(probe.case, probe.options, &mut probe.pick);
    unmasked_difference(probe, &poisoned, "with other numbers under the mask,")
}
