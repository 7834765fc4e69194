//! A row that was cut off counts as declared.
//!
//! ### Claim
//! A row without an eos counts as `unfinished` says.
//!
//! ### Why it matters
//! Rows that ran into the length limit are filled up like others once a longer one is in the batch,
//! and their pads were not sampled. Trainers that leave such rows out on purpose must do so wholly,
//! and no others.
//!
//! ### Does not hold for
//! Rows with an eos; rows of no token.
//!
//! ### Bugs it has caught
//! verl #3805: a row that was cut off and then filled up is all true. trlx #420: a row that is
//! filled up behind its end counts as cut off.
//!
//! ### Example
//! ```diff
//! -    return mask
//! +    padding = (tokens == pad).flip(1).cumprod(dim=1).flip(1).bool()
//! +    return torch.where(finished, mask, ~padding)
//! ```

use super::{expect_flag, rows};
use crate::completion_mask::{CompletionMask, Options, Unfinished};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionMask> = Rule::new(
    Pitfall::Configuration,
    &[
        "unfinished-row-counts-pads",
        "unfinished-rows-kept",
        "unfinished-rows-dropped",
        "no-eos-taken-for-the-first-token",
        "last-token-of-unfinished-rows-lost",
        "pad-taken-for-an-eos",
        "pad-id-hard-coded",
    ],
    check,
);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let Options { pad, unfinished, .. } = *probe.options;
    let returned = probe.finite_output()?;
    let mut checked = false;
    for (row, tokens, first) in rows(probe.case, probe.options) {
        if first.is_some() {
            continue;
        }
        let sampled = tokens.iter().rposition(|id| *id != pad).map_or(0, |last| last + 1);
        for token in 0..tokens.len() {
            let (expected, why) = match unfinished {
                Unfinished::Keep if token < sampled => (true, "its pads begin later"),
                Unfinished::Keep => (false, "it has pads only from here on"),
                Unfinished::All => (true, "every column counts"),
                Unfinished::Drop => (false, "it is left out"),
            };
            let why = || format!("row {row} has no eos, and {why}");
            expect_flag(&returned.output.mask, (row, token), expected, why)?;
            checked = true;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
