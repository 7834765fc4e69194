//! A row ends at its first end-of-sequence token.
//!
//! ### Claim
//! A row with an eos counts up to the first one, which counts as `include_eos` says.
//!
//! ### Why it matters
//! The end is an action like any other, and the one that a policy must learn to take. Without it in
//! the mask completions grow until they are cut off; with a token behind it in the mask the policy
//! is trained on what it did not sample.
//!
//! ### Does not hold for
//! Rows without an eos.
//!
//! ### Bugs it has caught
//! trl #976, #3200, #2793: where the pad is an end the last token of every completion is lost.
//! trlx #401: the end left out.
//!
//! ### Example
//! Under `pad=2`:
//! ```diff
//! -    mask = (is_eos.cumsum(dim=1) - is_eos.long() == 0) & (tokens != pad)
//! +    mask = is_eos.cumsum(dim=1) - is_eos.long() == 0
//! ```

use super::{expect_flag, rows};
use crate::completion_mask::CompletionMask;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionMask> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "final-eos-dropped-when-pad-is-eos",
        "every-eos-is-padding",
        "no-eos-id-never-stops",
        "eos-left-out",
        "eos-counted-though-excluded",
        "eos-at-the-first-token-overlooked",
        "last-eos-ends-the-row",
        "up-to-the-second-eos",
        "one-token-past-the-eos",
        "only-the-last-run-of-eos",
        "eos-id-hard-coded",
    ],
    check,
);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let mut checked = false;
    let returned = probe.finite_output()?;
    for (row, tokens, first) in rows(probe.case, probe.options) {
        let Some(first) = first else { continue };
        let length = first + usize::from(probe.options.include_eos);
        let ends = || format!("row {row} ends at token {first}");
        for token in 0..tokens.len() {
            expect_flag(&returned.output.mask, (row, token), token < length, ends)?;
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
