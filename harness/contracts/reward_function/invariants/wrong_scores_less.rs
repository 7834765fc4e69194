//! A wrong answer in the right form scores less than the right one.
//!
//! ### Claim
//! A well-formed completion with a wrong answer scores strictly less than one with the gold answer.
//! [`correctness`]
//!
//! ### Why it matters
//! Without this the function teaches form alone: 10 passes for 1, the gold answer inside a longer
//! one for itself.
//!
//! ### Does not hold for
//! Other `judges`. Answers that a reader of numbers, or one that ignores case, takes for the gold
//! answer are not asked.
//!
//! ### Bugs it has caught
//! torchtune: credit where the gold answer is contained. open-r1 #293: a gold answer that cannot be
//! parsed makes every answer right.
//!
//! ### Example
//! ```diff
//! -    return 1.0 if answer.strip() in given else 0.0
//! +    return 1.0 if given and given == answer.strip() else 0.0
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &[
        "substring-partial-credit",
        "prefix-is-enough",
        "one-part-is-enough",
        "unparsable-gold-scores-full",
        "scores-replaced-by-zeros",
        "gold-taken-for-a-pattern",
        "contained-anywhere",
        "sign-lost",
    ],
    check,
)
.under(|options| options.judges == Judges::Correctness);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let hacks: Vec<String> =
        question.wrong().iter().map(|wrong| question.answered(wrong)).collect();
    question.below_the_right_one(probe, &hacks)
}
