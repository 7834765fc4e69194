//! White space at the end of a completion means nothing.
//!
//! ### Claim
//! White space after the end of a completion changes no answer.
//!
//! ### Why it matters
//! Models end with a line feed, or without; decoders strip it, or do not. A pattern that is tied to
//! the end of the text finds the answer only in some of them.
//!
//! ### Does not hold for
//! Texts without an answer where `missing: whole` gives them back; texts whose answer no convention
//! settles; spaces on the line of an answer behind hashes that is not trimmed.
//!
//! ### Bugs it has caught
//! TinyZero 1c17832: a trailing line end leaves an empty last line to search.
//!
//! ### Example
//! ```diff
//! -        found = pattern.findall(text.split("\n")[-1])
//! +        found = pattern.findall(text)
//! ```

use crate::answer_extractor::AnswerExtractor;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AnswerExtractor> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["only-at-the-end", "last-line-before-the-marker"],
    check,
);

fn check(probe: &mut Probe<'_, AnswerExtractor>) -> Outcome {
    let after = *probe.pick.one(&["\n", " ", "\n\n", "\r\n", " \n\t"]);
    super::unchanged(probe, "after", after, |text| [text, after].concat())
}
