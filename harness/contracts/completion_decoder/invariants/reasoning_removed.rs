//! Reasoning does not reach the reward function.
//!
//! ### Claim
//! Nothing of a closed block of reasoning is left in a text.
//!
//! ### Why it matters
//! An answer that the model considered and dropped stands in its reasoning. A reward function that
//! sees it scores what the model decided against.
//!
//! ### Does not hold for
//! Reasoning that is kept; completions of which the contract expects no certain text.
//!
//! ### Bugs it has caught
//! `<think>.*?</think>` without DOTALL leaves every block of more than one line; tags replaced and
//! their content left.
//!
//! ### Example
//! Under `think="strip-closed"`:
//! ```diff
//! -    block = re.compile(rf"{opening}.*?(?:{closing}|\Z)")
//! +    block = re.compile(rf"{opening}.*?(?:{closing}|\Z)", re.DOTALL)
//! ```

use crate::completion_decoder::{CompletionDecoder, Options, Think};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionDecoder> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &[
        "reasoning-kept-as-content",
        "tags-removed-reasoning-kept",
        "think-block-without-line-ends",
        "first-closing-tag-taken",
    ],
    check,
)
.under(|options| options.think != Think::Keep);

/// What stands in the reasoning, and nowhere else.
const THOUGHT: &str = "@thought@";

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let Options { artefacts, think_tags: [open, close], think, .. } = probe.options;
    let mut thoughtful = probe.case.clone();
    for text in &mut thoughtful.completions {
        let mut markers = artefacts.iter().chain([open, close]);
        if markers.any(|marker| text.contains(&**marker)) || text.contains('@') {
            return Err(Stop::Vacuous);
        }
        let block = format!("{open}{THOUGHT}\n{text}{close}");
        *text = match (think, probe.pick.below(2)) {
            (Think::StripClosed, 0) => format!("{text}{block}{text}{block}a"),
            (_, 0) => format!("{block}b{block}{text}a"),
            _ => format!("{block}{text}a"),
        };
    }
    let decoded = probe.call(&thoughtful)?;
    for (row, text) in decoded.texts.iter().enumerate() {
        if text.contains(THOUGHT) {
            broken!(
                "for the completion {}, texts[{row}] is {}, with the reasoning in it",
                quoted(&thoughtful.completions[row]),
                quoted(text),
            );
        }
    }
    Ok(())
}
