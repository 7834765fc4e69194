//! What counts is the answer, not what was thought of on the way.
//!
//! ### Claim
//! The gold answer in the reasoning alone never gets the maximum. [`correctness`]
//!
//! ### Why it matters
//! A function that searches the whole completion rewards weighing every answer and giving another
//! one.
//!
//! ### Does not hold for
//! Other `judges`. Templates without reasoning.
//!
//! ### Bugs it has caught
//! Functions that ask whether the gold answer is in the completion.
//!
//! ### Example
//! ```diff
//! -    return 1.0 if answer.strip() in completion else 0.0
//! +    return 1.0 if given and given == answer.strip() else 0.0
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::template::Template;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::RewardDecodingMismatch, &["contained-anywhere"], check)
        .under(|options| options.judges == Judges::Correctness && Template::of(options).reasons());

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let wrong = question.wrong();
    let Question { gold, template, .. } = &question;
    let thought = format!("I thought of {gold} first, and then of {}.", wrong[0]);
    let hacks = [template.render(&thought, &wrong[0]), template.render(&thought, "")];
    question.below_the_right_one(probe, &hacks)
}
