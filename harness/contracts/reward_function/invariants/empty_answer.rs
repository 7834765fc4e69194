//! An answer part without an answer is not right.
//!
//! ### Claim
//! Answer tags with nothing between them never get the maximum. [`correctness`]
//!
//! ### Why it matters
//! The empty text is contained in every text and equal to what a failed parser gives: tags without
//! content are the cheapest hack there is.
//!
//! ### Does not hold for
//! Other `judges`.
//!
//! ### Bugs it has caught
//! open-instruct #1683: containment the wrong way round. Parsers whose failure on both sides
//! compares equal.
//!
//! ### Example
//! ```diff
//! -    return 1.0 if all(word in answer.split() for word in given.split()) else 0.0
//! +    return 1.0 if given and given == answer.strip() else 0.0
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::RewardDecodingMismatch, &["contained-the-wrong-way-round"], check)
        .under(|options| options.judges == Judges::Correctness);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let hacks = ["", " ", "\n"].map(|answer| question.answered(answer));
    question.below_the_right_one(probe, &hacks)
}
