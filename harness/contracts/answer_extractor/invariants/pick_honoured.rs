//! Of several answers the one that is asked for is taken.
//!
//! ### Claim
//! Of an answer and another after it, `pick: last` takes the other one, `pick: first` the first.
//!
//! ### Why it matters
//! Models quote an example of the format, or answer, check and answer again. The first answer is
//! then a draft or no answer at all, and what goes from the first mark to the last is neither.
//!
//! ### Does not hold for
//! Answers that would not stand alone between marks.
//!
//! ### Bugs it has caught
//! TinyZero 5f94a68, verifiers #196: the first answer for the last.
//!
//! ### Example
//! ```diff
//!          found = pattern.findall(text)
//! -        answers.append(found[0].strip() if found else None)
//! +        answers.append(found[-1].strip() if found else None)
//! ```

use crate::answer_extractor::oracle::{answer, settled};
use crate::answer_extractor::{AnswerExtractor, AnswerExtractorCase, Which};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AnswerExtractor> = Rule::new(
    Pitfall::Configuration,
    &["first-answer-taken", "last-answer-taken", "greedy-to-the-last-tag"],
    check,
);

fn check(probe: &mut Probe<'_, AnswerExtractor>) -> Outcome {
    let options = probe.options;
    let mut wanted = Vec::new();
    let mut texts = Vec::new();
    for found in probe.case.texts.iter().filter_map(|text| settled(text, options)) {
        let other = if found.trim() == "1" { "2" } else { "1" };
        let text = [options.rendered(found), options.rendered(other)].join("\n");
        let picked = match options.pick {
            Which::Last => other,
            Which::First => found,
        };
        if settled(&text, options).map(str::trim) == Some(picked.trim()) {
            wanted.push(picked);
            texts.push(text);
        }
    }
    if texts.is_empty() {
        return Err(Stop::Vacuous);
    }
    let output = probe.call(&AnswerExtractorCase { texts: texts.clone().into() })?;
    for ((wanted, text), found) in wanted.into_iter().zip(&texts).zip(&output.answers) {
        if !answer(text, options).accepts(found.as_deref()) {
            let which = if options.pick == Which::Last { "last" } else { "first" };
            let both = found_for(found.as_deref(), Some(wanted));
            broken!("the {which} answer of {} is extracted as {both}", quoted(text));
        }
    }
    Ok(())
}
