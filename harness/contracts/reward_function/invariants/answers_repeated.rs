//! Saying wrong things again and again does not make them right.
//!
//! ### Claim
//! The answer part repeated around wrong answers never gets the maximum. [`correctness`]
//!
//! ### Why it matters
//! A score per tag or per answer part adds up: the policy learns to repeat the part until the sum
//! is that of a right answer.
//!
//! ### Does not hold for
//! Other `judges`.
//!
//! ### Bugs it has caught
//! GRPO runs whose completions end in dozens of answer tags; verl search_r1 divides the score where
//! there are more than ten.
//!
//! ### Example
//! ```diff
//! -    return 0.2 * len(found) + 0.8 * (given == answer.strip())
//! +    return 1.0 if given and given == answer.strip() else 0.0
//! ```

use crate::reward_function::probes::{Question, some};
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::RewardDecodingMismatch, &["score-for-every-answer-part"], check)
        .under(|options| options.judges == Judges::Correctness);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let wrong = question.wrong();
    let hacks: Vec<String> = [2, 4, 12]
        .into_iter()
        .map(|count| {
            let parts = some(&wrong, count).into_iter().skip(1);
            let more = parts.map(|wrong| format!("\n{}", question.template.answer_part(wrong)));
            question.answered(&wrong[0]) + &more.collect::<String>()
        })
        .collect();
    question.below_the_right_one(probe, &hacks)
}
