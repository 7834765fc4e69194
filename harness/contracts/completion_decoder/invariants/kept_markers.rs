//! The markers of the answer survive.
//!
//! ### Claim
//! Every kept marker outside removed reasoning is still there.
//!
//! ### Why it matters
//! Where the markers of the answer are registered as special tokens, a decoder that skips those
//! loses them, the extractor finds nothing, and every reward is 0.
//!
//! ### Does not hold for
//! Completions of which the contract expects no certain text.
//!
//! ### Bugs it has caught
//! `skip_special_tokens=True` with `<answer>` among the special tokens.
//!
//! ### Example
//! ```diff
//! -        text = re.sub("<[^<>]*>", "", text)
//! +        while found := [artefact for artefact in artefacts if artefact in text]:
//! +            text = text.replace(found[0], "")
//! ```

use crate::completion_decoder::{CompletionDecoder, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionDecoder> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &["kept-markers-removed-as-special", "all-tags-removed", "cut-at-the-first-artefact"],
    check,
)
.under(|options| !options.keep.is_empty());

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for (row, completion) in probe.case.completions.iter().enumerate() {
        let Some(pieces) = oracle::pieces(completion, probe.options) else { continue };
        for marker in &probe.options.keep {
            let expected: usize = pieces.iter().map(|piece| piece.matches(&**marker).count()).sum();
            let text = &returned.output.texts[row];
            let found = text.matches(&**marker).count();
            checked |= expected > 0;
            if found < expected {
                broken!(
                    "texts[{row}] is {}, with {} {found} times, expected {expected} times",
                    quoted(text),
                    quoted(marker),
                );
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
