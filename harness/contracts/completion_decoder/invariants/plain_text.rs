//! Text without markers or special tokens comes back as it was.
//!
//! ### Claim
//! Plain text survives byte for byte, but for outer white space under `trim`.
//!
//! ### Why it matters
//! Models write plain answers, above all early in training. A decoder that loses or changes them
//! takes away the only completions there are to learn from.
//!
//! ### Does not hold for
//! Text with artefacts or tags of reasoning; any text under `strip-always`.
//!
//! ### Bugs it has caught
//! Texts blanked for want of a tag; `encode('ascii', 'ignore')`; white space collapsed.
//!
//! ### Example
//! ```diff
//! -        texts.append(" ".join(text.split()))
//! +        texts.append(text.strip())
//! ```

use crate::completion_decoder::{CompletionDecoder, Options, Think};
use shakedown_core::contract::prelude::*;
use shakedown_core::numeric::tolerance::Wanted;

pub(super) const RULE: Rule<CompletionDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &[
        "blank-without-markers",
        "blank-without-a-closing-tag",
        "beyond-ascii-dropped",
        "white-space-collapsed",
        "cut-characters-dropped",
        "line-ends-replaced",
        "first-line-only",
        "lower-case",
        "truncated-to-a-length",
        "artefact-stripped-as-characters",
        "stop-string-cut-although-absent",
        "outer-white-space-lost",
        "answer-part-only",
    ],
    check,
)
.under(|options| options.think != Think::StripAlways);

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let returned = probe.output()?;
    let Options { artefacts, think_tags, trim, .. } = probe.options;
    let mut checked = false;
    for (row, completion) in probe.case.completions.iter().enumerate() {
        if artefacts.iter().chain(think_tags).any(|marker| completion.contains(&**marker)) {
            continue;
        }
        checked = true;
        let expected = match trim {
            true => Wanted::Pieces(vec![completion.clone()]),
            false => Wanted::text(completion.clone()),
        };
        let text = &returned.output.texts[row];
        if !expected.accepts(Some(text)) {
            broken!("texts[{row}] is {}", found_for(Some(text), Some(completion)));
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
