//! The form of a completion does not depend on the answer in it.
//!
//! ### Claim
//! A well-formed completion scores the same whatever answer of the family it gives. [`format`]
//!
//! ### Why it matters
//! Rewards for form and for correctness are added up; where one contains the other, a wrong answer
//! is punished twice and a right one in the wrong form rewarded.
//!
//! ### Does not hold for
//! Other `judges`.
//!
//! ### Bugs it has caught
//! Format functions that call the correctness check on the way.
//!
//! ### Example
//! Under `judges="format"`:
//! ```diff
//! -            score = form(completion) * correctness(completion, answer)
//! +            score = form(completion)
//! ```

use crate::reward_function::probes::{Question, differ};
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::RewardDecodingMismatch, &["form-needs-the-gold"], check)
        .under(|options| options.judges == Judges::Format);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let mut texts = vec![question.right()];
    texts.extend(question.wrong().iter().map(|wrong| question.answered(wrong)));
    let scores = question.scores(probe, &texts)?;
    for (text, score) in texts.iter().zip(&scores) {
        if differ(probe, *score, scores[0]) {
            broken!(
                "{} scores {}, but {} scores {}",
                quoted(text),
                rounded(*score),
                quoted(&texts[0]),
                rounded(scores[0])
            );
        }
    }
    Ok(())
}
