//! What stands behind the first end is nobody's business.
//!
//! ### Claim
//! Other tokens behind the first eos of a row change nothing.
//!
//! ### Why it matters
//! Engines that sample in blocks leave tokens behind the end, and buffers hold what was in them.
//! Pads are only one of the things that can stand there.
//!
//! ### Does not hold for
//! Rows without an eos.
//!
//! ### Bugs it has caught
//! Masks by token value (OpenRLHF de254567): true wherever no pad stands. Lengths that end at the
//! last eos of a row.
//!
//! ### Example
//! ```diff
//! -    mask = tokens != pad
//! +    mask = is_eos.cumsum(dim=1) - is_eos.long() == 0
//! ```

use super::{expect_same, rows};
use crate::completion_mask::CompletionMask;
use shakedown_core::contract::prelude::*;
use shakedown_core::value::text::one_line;

pub(super) const RULE: Rule<CompletionMask> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "mask-by-token-value",
        "last-eos-ends-the-row",
        "up-to-the-second-eos",
        "no-eos-id-never-stops",
        "eos-test-on-the-last-column",
    ],
    check,
);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let before = probe.finite_output()?;
    let mut changed = probe.case.clone();
    let options = probe.options;
    let word = (0..).find(|id| options.is_word(*id)).expect("there are many words");
    for (row, tokens, first) in rows(probe.case, options) {
        for token in first.map_or(tokens.len(), |first| first + 1)..tokens.len() {
            let eos = *probe.pick.one(&options.eos);
            changed.tokens[[row, token]] = *probe.pick.one(&[word, eos, options.pad]);
        }
    }
    if changed == *probe.case {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&changed)?;
    expect_same(&before.output.mask, &after.mask, &format!("with {}", one_line(&changed)))
}
