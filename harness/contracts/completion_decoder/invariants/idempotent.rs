//! A text that is decoded again stays.
//!
//! ### Claim
//! Decoding a decoded text changes nothing.
//!
//! ### Why it matters
//! Pipelines decode in several places. A decoder that takes a little off the end each time damages
//! what an earlier one left.
//!
//! ### Does not hold for
//! `strip-always`, whose result has no closing tag; completions of which the contract expects no
//! certain text.
//!
//! ### Bugs it has caught
//! vLLM #3016: the length of the stop string cut off whether or not it is there.
//!
//! ### Example
//! ```diff
//! -        text = text[: -len(artefacts[-1])]
//! +        while found := [artefact for artefact in artefacts if artefact in text]:
//! +            text = text.replace(found[0], "")
//! ```

use crate::completion_decoder::{CompletionDecoder, Think, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["stop-string-cut-although-absent", "artefacts-removed-once-each"],
    check,
)
.under(|options| options.think != Think::StripAlways);

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let completions = probe.case.completions.iter();
    if completions.map(|text| oracle::pieces(text, probe.options)).any(|known| known.is_none()) {
        return Err(Stop::Vacuous);
    }
    let once = probe.output()?;
    let texts = once.output.texts.clone();
    let mut again = probe.case.clone();
    again.completions.clone_from(&texts);
    let twice = probe.call(&again)?;
    for (row, (twice, once)) in twice.texts.iter().zip(&texts).enumerate() {
        if twice != once {
            broken!("decoded again, texts[{row}] is {}", found_for(Some(twice), Some(once)));
        }
    }
    Ok(())
}
