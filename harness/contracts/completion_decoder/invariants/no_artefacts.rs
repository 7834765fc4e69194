//! No special token is left.
//!
//! ### Claim
//! No artefact stands in a text.
//!
//! ### Why it matters
//! A reward function that compares strings sees `42<eos>` and scores 0, for every completion that
//! ends.
//!
//! ### Does not hold for
//! Components that declare other `artefacts`.
//!
//! ### Bugs it has caught
//! AReaL #846: one of several stop tokens removed. Padding on the left that only a right strip was
//! written for.
//!
//! ### Example
//! ```diff
//! -        for artefact in artefacts:
//! -            text = text.removesuffix(artefact)
//! +        while found := [artefact for artefact in artefacts if artefact in text]:
//! +            text = text.replace(found[0], "")
//! ```

use crate::completion_decoder::CompletionDecoder;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &[
        "one-of-several-stops-removed",
        "artefacts-removed-at-the-end-only",
        "only-one-artefact-known",
        "artefacts-removed-once-each",
    ],
    check,
)
.under(|options| !options.artefacts.is_empty());

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for (row, text) in returned.output.texts.iter().enumerate() {
        for artefact in &probe.options.artefacts {
            checked |= probe.case.completions[row].contains(&**artefact);
            if text.contains(&**artefact) {
                broken!("texts[{row}] is {}, with {} in it", quoted(text), quoted(artefact));
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
