//! What stands under the mask is nobody's business.
//!
//! ### Claim
//! Overwriting what stands under the mask changes nothing.
//!
//! ### Why it matters
//! Pads and prompts have losses too, and nobody looks at them. A result that depends on them
//! trains on noise, and does so only in micro-batches with rows of unequal length.
//!
//! ### Does not hold for
//! NaN and infinities under the mask where `masked_values: finite` is declared.
//!
//! ### Bugs it has caught
//! trl #1987: an ignore index that is not honoured. trl #5594: masked after the arithmetic, so that
//! NaN survives times 0.
//!
//! ### Example
//! Under `masked_values="any"`:
//! ```diff
//! -        losses = batch["token_losses"] * mask
//! +        losses = batch["token_losses"].masked_fill(~mask, 0)
//! ```

use super::{same_loss, with_tokens};
use crate::accumulated_loss::AccumulatedLoss;
use crate::accumulated_loss::generate::POISON;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AccumulatedLoss> =
    Rule::new(Pitfall::MaskingAlignment, &["mask-ignored"], check);

fn check(probe: &mut Probe<'_, AccumulatedLoss>) -> Outcome {
    with_tokens(probe)?;
    if probe.case.micro_batches.iter().all(|part| part.mask.iter().all(|kept| *kept)) {
        return Err(Stop::Vacuous);
    }
    let any = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let anything = probe.options.masked_values == MaskedValues::Any && probe.pick.below(3) > 0;
    let values = if anything { &any[..] } else { &POISON[..] };
    let mut poisoned = probe.case.clone();
    for part in &mut poisoned.micro_batches {
        for (loss, kept) in part.token_losses.iter_mut().zip(&part.mask) {
            *loss = if *kept { *loss } else { *probe.pick.one(values) };
        }
    }
    same_loss(probe, &poisoned, 1.0, "with other numbers under the mask")
}
