//! What counts in a row is its beginning.
//!
//! ### Claim
//! Each row of the mask is ones, then zeros.
//!
//! ### Why it matters
//! A completion is sampled from its first token to its last. A hole in its mask is a token that was
//! sampled and is not trained; lengths that are made of the mask's last column are wrong too.
//!
//! ### Does not hold for
//! Completions with a tool's output inside, whose mask is the business of another component.
//!
//! ### Bugs it has caught
//! OpenRLHF de254567, 9d8b3fda and 01b8a23d: holes at the pads and ends inside a completion.
//!
//! ### Example
//! ```diff
//! -    padding = tokens == pad
//! +    padding = (tokens == pad).flip(1).cumprod(dim=1).flip(1).bool()
//!      return torch.where(finished, mask, ~padding)
//! ```

use crate::completion_mask::CompletionMask;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionMask> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "mask-by-token-value",
        "every-eos-is-padding",
        "pads-inside-masked",
        "padding-mask-returned",
        "right-aligned",
    ],
    check,
);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let returned = probe.finite_output()?;
    let mask = &returned.output.mask;
    if mask.ncols() < 2 {
        return Err(Stop::Vacuous);
    }
    for (row, flags) in mask.rows().into_iter().enumerate() {
        let rise = (1..flags.len()).find(|token| flags[*token] > flags[token - 1]);
        if let Some(token) = rise {
            let [before, here] = [flags[token - 1], flags[token]].map(number);
            broken!("mask[{row}, {}] is {before} and mask[{row}, {token}] is {here}", token - 1);
        }
    }
    Ok(())
}
