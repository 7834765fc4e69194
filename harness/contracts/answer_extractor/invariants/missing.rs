//! No answer gives what is declared for it.
//!
//! ### Claim
//! A text without balanced marks gives `missing`, and never an answer.
//!
//! ### Why it matters
//! Completions are cut at the length limit every day. A scrap of one that counts as its answer
//! rewards what was never said; an exception ends the run.
//!
//! ### Does not hold for
//! Texts in which some marks are balanced and some are not.
//!
//! ### Bugs it has caught
//! The `split` of the GRPO tutorial: the whole text is the answer where there is no tag.
//!
//! ### Example
//! ```diff
//! -        answers.append(text.split(f"<{tag}>")[-1].split(f"</{tag}>")[0].strip())
//! +        found = pattern.findall(text)
//! +        answers.append(found[-1].strip() if found else None)
//! ```

use crate::answer_extractor::AnswerExtractor;
use crate::answer_extractor::oracle::{Reading, answer, readings};
use shakedown_core::contract::prelude::*;
use shakedown_core::numeric::tolerance::Wanted;

pub(super) const RULE: Rule<AnswerExtractor> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &[
        "unclosed-answer-taken",
        "whole-text-without-a-tag",
        "empty-for-null",
        "null-for-empty",
        "nothing-for-the-whole",
        "the-word-none",
        "unclosed-box-taken",
    ],
    check,
);

fn check(probe: &mut Probe<'_, AnswerExtractor>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for ((row, text), found) in probe.case.texts.indexed_iter().zip(&returned.output.answers) {
        let readings = readings(text, probe.options);
        if readings.iter().any(|reading| *reading != Reading::Missing) {
            continue;
        }
        checked = true;
        let Wanted::OneOf(expected) = answer(text, probe.options) else { continue };
        if !expected.contains(found) {
            let both = found_for(found.as_deref(), expected[0].as_deref());
            broken!("{} has no answer; answers[{row}] is {both}", quoted(text));
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
