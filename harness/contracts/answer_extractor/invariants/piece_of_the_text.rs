//! Nothing is made up.
//!
//! ### Claim
//! An answer is a piece of its text, character by character.
//!
//! ### Why it matters
//! Normalising is the verifier's business, which does it to the gold answer too. What is changed
//! on one side only no longer compares equal.
//!
//! ### Does not hold for
//! Texts without an answer, and those whose answer no convention settles.
//!
//! ### Bugs it has caught
//! verifiers #196: the printed form of an object for its text.
//!
//! ### Example
//! ```diff
//! -        answers.append(found[-1].strip().replace(",", "") if found else None)
//! +        answers.append(found[-1].strip() if found else None)
//! ```

use crate::answer_extractor::AnswerExtractor;
use crate::answer_extractor::oracle::settled;
use shakedown_core::contract::prelude::*;
use shakedown_core::value::text::quoted_or_null;

pub(super) const RULE: Rule<AnswerExtractor> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["parsed-object-for-its-text", "letters-lowered", "white-space-collapsed", "only-ascii"],
    check,
);

fn check(probe: &mut Probe<'_, AnswerExtractor>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for ((row, text), found) in probe.case.texts.indexed_iter().zip(&returned.output.answers) {
        if settled(text, probe.options).is_none() {
            continue;
        }
        checked = true;
        if !found.as_ref().is_some_and(|found| text.contains(found)) {
            let found = quoted_or_null(found.as_deref());
            broken!("answers[{row}] is {found}, expected a piece of {}", quoted(text));
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
