//! A mask is made of flags.
//!
//! ### Claim
//! Every entry of the mask is 0 or 1.
//!
//! ### Why it matters
//! Losses are multiplied by the mask and divided by its sum. A count or a negative entry in it
//! weights tokens, or turns their gradient around.
//!
//! ### Does not hold for
//! Nothing: flags are not rounded.
//!
//! ### Bugs it has caught
//! `1 − cumsum(eos)` that is not clamped, and goes below 0 behind the second end.
//!
//! ### Example
//! Under `pad=2`:
//! ```diff
//! -    mask = 1 - (is_eos.cumsum(dim=1) - is_eos.long())
//! +    mask = is_eos.cumsum(dim=1) - is_eos.long() == 0
//! ```

use crate::completion_mask::CompletionMask;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionMask> =
    Rule::new(Pitfall::MaskingAlignment, &["negative-behind-the-second-eos"], check);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let returned = probe.finite_output()?;
    let mask = &returned.output.mask;
    for ((row, token), flag) in mask.indexed_iter() {
        if ![0.0, 1.0].contains(flag) {
            broken!("mask[{row}, {token}] is {}, expected 0 or 1", number(*flag));
        }
    }
    if mask.is_empty() { Err(Stop::Vacuous) } else { Ok(()) }
}
