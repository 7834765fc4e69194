//! A text is not blank where a reader would expect content.
//!
//! ### Claim
//! A completion with content outside its reasoning gives a text that is not blank.
//!
//! ### Why it matters
//! A blank text scores like a refusal to answer. It is the most common way in which a decoder makes
//! a reward constant, and nothing raises.
//!
//! ### Does not hold for
//! Completions with nothing but reasoning, where `think` removes it.
//!
//! ### Bugs it has caught
//! ROLL a0ea3540: a tag of reasoning anywhere blanks the text. Texts blanked for want of a marker.
//!
//! ### Example
//! Under `think="strip-closed"`:
//! ```diff
//! -                text = text.partition(think_tags[1])[2]
//! +                text = text.rpartition(think_tags[1])[2]
//! ```

use crate::completion_decoder::{CompletionDecoder, oracle};
use shakedown_core::contract::prelude::*;
use shakedown_core::numeric::tolerance::is_white;

pub(super) const RULE: Rule<CompletionDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["any-think-tag-blanks-the-answer", "blank-without-markers", "blank-without-a-closing-tag"],
    check,
);

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let returned = probe.output()?;
    let blank = |text: &str| text.chars().all(is_white);
    let mut checked = false;
    for (row, completion) in probe.case.completions.iter().enumerate() {
        let Some(pieces) = oracle::pieces(completion, probe.options) else { continue };
        if pieces.iter().all(|piece| blank(piece)) {
            continue;
        }
        checked = true;
        let text = &returned.output.texts[row];
        if blank(text) {
            let (text, completion) = (quoted(text), quoted(completion));
            broken!("texts[{row}] is {text} for the completion {completion}");
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
