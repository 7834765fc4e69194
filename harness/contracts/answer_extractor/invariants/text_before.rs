//! What is said before the answer is not the answer.
//!
//! ### Claim
//! Text without marks in front of a completion, reasoning too, changes no answer.
//!
//! ### Why it matters
//! Reasoning holds numbers, line ends, `<` and `&`. An extractor that trips over them rewards short
//! reasoning, and one that takes an answer from them rewards guessing.
//!
//! ### Does not hold for
//! Texts without an answer where `missing: whole` gives them back; texts whose answer no convention
//! settles.
//!
//! ### Bugs it has caught
//! torchtune #2604: an XML parser for prose. TinyZero 1c17832: the last line is taken first.
//!
//! ### Example
//! ```diff
//! -        match = pattern.match(text)
//! -        answers.append(match[1].strip() if match else None)
//! +        found = pattern.findall(text)
//! +        answers.append(found[-1].strip() if found else None)
//! ```

use crate::answer_extractor::AnswerExtractor;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AnswerExtractor> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["xml-parser-for-prose", "only-at-the-start", "hashes-at-the-start-of-a-line"],
    check,
);

/// What is said before.
const BEFORE: &[&str] = &[
    "a",
    "so ",
    "\n",
    "1\n",
    "It is 7.\n\n",
    "<b>a < b && c > d</b>\n",
    "if x<0 & y: 3, \"",
    "é\u{200b}答 ",
    "```\n1\n```\n",
    "$x$ \\frac{1}{2} ",
];

fn check(probe: &mut Probe<'_, AnswerExtractor>) -> Outcome {
    let before = *probe.pick.one(BEFORE);
    super::unchanged(probe, "before", before, |text| [before, text].concat())
}
