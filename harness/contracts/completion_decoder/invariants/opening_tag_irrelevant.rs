//! It does not matter where reasoning was opened.
//!
//! ### Claim
//! A text is the same whether its reasoning was opened in the prompt or in the completion.
//!
//! ### Why it matters
//! Many chat templates end the prompt with the opening tag, so that completions hold the closing
//! one only. The same decoder serves both kinds.
//!
//! ### Does not hold for
//! Reasoning that is kept; completions with other tags.
//!
//! ### Bugs it has caught
//! ROLL a0ea3540: a completion with the opening tag gave an empty text, one without gave the
//! answer.
//!
//! ### Example
//! Under `think="strip-closed"`:
//! ```diff
//! -    block = re.compile(f"{opening}.*", re.DOTALL)
//! +    block = re.compile(rf"{opening}.*?(?:{closing}|\Z)", re.DOTALL)
//! ```

use crate::completion_decoder::{CompletionDecoder, Options, Think};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["any-think-tag-blanks-the-answer", "block-opened-in-the-prompt-kept"],
    check,
)
.under(|options| options.think != Think::Keep);

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let [open, close] = &probe.options.think_tags;
    let Options { artefacts, think_tags, .. } = probe.options;
    let mut both = [probe.case.clone(), probe.case.clone()];
    for (row, text) in probe.case.completions.iter().enumerate() {
        // Any text serves as the reasoning and as the answer, as long as it has no tags of its own.
        if artefacts.iter().chain(think_tags).any(|marker| text.contains(&**marker)) {
            return Err(Stop::Vacuous);
        }
        let answer = if text.is_empty() { "a" } else { text };
        both[0].completions[row] = [text, &**close, answer].concat();
        both[1].completions[row] = [&**open, text, close, answer].concat();
    }
    let [in_the_prompt, in_the_completion] = &both;
    let [before, after] = [probe.call(in_the_prompt)?, probe.call(in_the_completion)?];
    for (row, (after, before)) in after.texts.iter().zip(&before.texts).enumerate() {
        if after != before {
            broken!(
                "for the completion {}, texts[{row}] is {} as without the opening tag",
                quoted(&in_the_completion.completions[row]),
                found_for(Some(after), Some(before)),
            );
        }
    }
    Ok(())
}
