//! What is put between the marks comes out again.
//!
//! ### Claim
//! An answer alone between its marks is extracted as it stands.
//!
//! ### Why it matters
//! The verifier compares what it gets with the gold answer. A sign, a comma, a brace or a line
//! that is lost here makes a right answer wrong, or a wrong one right.
//!
//! ### Does not hold for
//! Answers that would not stand alone between marks: with marks or unbalanced braces in them, and
//! with hashes those that are empty or go over several lines.
//!
//! ### Bugs it has caught
//! open-instruct #1530: -5 becomes 5, while -5.0 stays. Search-R1: one tag is not enough. torchtune
//! extract_tags: a list for its element.
//!
//! ### Example
//! ```diff
//! -    pattern = re.compile(f"<{tag}>(.*?)</{tag}>")
//! +    pattern = re.compile(f"<{tag}>(.*?)</{tag}>", re.DOTALL)
//! ```

use crate::answer_extractor::oracle::{answer, settled};
use crate::answer_extractor::{AnswerExtractor, AnswerExtractorCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AnswerExtractor> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &[
        "two-tags-required",
        "sign-dropped-from-integers",
        "separators-dropped",
        "parsed-object-for-its-text",
        "marks-in-the-answer",
        "white-space-collapsed",
        "first-line-of-the-answer",
        "letters-lowered",
        "entities-unescaped",
        "only-ascii",
        "dot-stops-at-newlines",
        "tags-on-lines-of-their-own",
        "empty-answer-is-missing",
        "first-closing-brace",
        "one-level-of-braces",
        "no-braces-in-a-box",
        "braces-lost",
        "box-needs-dollars",
        "numbers-only",
        "first-word-of-the-line",
    ],
    check,
);

fn check(probe: &mut Probe<'_, AnswerExtractor>) -> Outcome {
    let options = probe.options;
    let answers = probe.case.texts.iter().filter_map(|text| settled(text, options));
    let (answers, texts): (Vec<&str>, Vec<String>) = answers
        .map(|answer| (answer, options.rendered(answer)))
        .filter(|(answer, text)| settled(text, options).map(str::trim) == Some(answer.trim()))
        .unzip();
    if answers.is_empty() {
        return Err(Stop::Vacuous);
    }
    let output = probe.call(&AnswerExtractorCase { texts: texts.clone().into() })?;
    for ((expected, text), found) in answers.into_iter().zip(&texts).zip(&output.answers) {
        if !answer(text, options).accepts(found.as_deref()) {
            broken!("{} gives {}", quoted(text), found_for(found.as_deref(), Some(expected)));
        }
    }
    Ok(())
}
