//! Listing answers is not answering.
//!
//! ### Claim
//! The gold answer in the middle of five candidates never gets the maximum. [`correctness`]
//!
//! ### Why it matters
//! A function that looks for the gold answer anywhere among what was said pays for guessing
//! everything.
//!
//! ### Does not hold for
//! Other `judges`.
//!
//! ### Bugs it has caught
//! Functions that compare with any of the matches of a pattern; word-bounded containment.
//!
//! ### Example
//! ```diff
//! -    return 1.0 if answer.strip() in [text.strip() for text in found] else 0.0
//! +    return 1.0 if given and given == answer.strip() else 0.0
//! ```

use crate::reward_function::probes::{Question, some};
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &["any-candidate-counts", "contained-anywhere"],
    check,
)
.under(|options| options.judges == Judges::Correctness);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let wrong = question.wrong();
    let mut candidates = some(&wrong, 4);
    candidates.insert(2, &question.gold);
    let parts: Vec<String> =
        candidates[1..].iter().map(|answer| question.template.answer_part(answer)).collect();
    let hacks = [
        format!("{}\n{}", question.answered(candidates[0]), parts.join("\n")),
        question.answered(&candidates.join(", ")),
    ];
    question.below_the_right_one(probe, &hacks)
}
