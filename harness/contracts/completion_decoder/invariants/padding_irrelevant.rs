//! Padding changes nothing.
//!
//! ### Claim
//! Special tokens added at either end of a completion change nothing.
//!
//! ### Why it matters
//! How much padding a completion gets depends on the others in its batch, and on the side on which
//! the engine pads. Its text must not.
//!
//! ### Does not hold for
//! Completions of which the contract expects no certain text.
//!
//! ### Bugs it has caught
//! Only trailing padding removed; everything from the first end token on lost.
//!
//! ### Example
//! ```diff
//! -        for artefact in artefacts:
//! -            text = text.split(artefact)[0]
//! +        while found := [artefact for artefact in artefacts if artefact in text]:
//! +            text = text.replace(found[0], "")
//! ```

use crate::completion_decoder::{CompletionDecoder, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &[
        "artefacts-removed-at-the-end-only",
        "cut-at-the-first-artefact",
        "one-of-several-stops-removed",
    ],
    check,
)
.under(|options| !options.artefacts.is_empty());

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let [left, right] = [probe.pick.below(3), probe.pick.below(3)];
    let artefact = probe.pick.one(&probe.options.artefacts).clone();
    let mut padded = probe.case.clone();
    for text in &mut padded.completions {
        *text = [&artefact.repeat(left), &**text, &artefact.repeat(right + 1)].concat();
    }
    let known = |text: &String| oracle::pieces(text, probe.options);
    let pairs = padded.completions.iter().zip(&probe.case.completions);
    // A piece of an artefact at an end may become a whole one there.
    if pairs.into_iter().any(|(padded, own)| known(own).is_none() || known(padded) != known(own)) {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let after = probe.call(&padded)?;
    for (row, (after, before)) in after.texts.iter().zip(&before.output.texts).enumerate() {
        if after != before {
            broken!(
                "with {left} × {artefact} before the completions and {} × after them, texts[{row}] \
                 is {}",
                right + 1,
                found_for(Some(after), Some(before)),
            );
        }
    }
    Ok(())
}
