//! A completion ends where the template ends.
//!
//! ### Claim
//! Text after the closing tag never gets the maximum. [`format`]
//!
//! ### Why it matters
//! What follows the answer is read by nobody and paid like everything else: completions grow until
//! they are cut off.
//!
//! ### Does not hold for
//! Other `judges`. White space. Templates that do not end in a tag or word.
//!
//! ### Bugs it has caught
//! open-r1 #359: `$` under MULTILINE stops at the first line end.
//!
//! ### Example
//! Under `judges="format"`:
//! ```diff
//! -    return 1.0 if once and FORM.match(completion.strip()) else 0.0
//! +    return 1.0 if once and FORM.fullmatch(completion.strip()) else 0.0
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::template::Template;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["multiline-dollar-accepts-a-tail", "tail-accepted"],
    check,
)
.under(|options| options.judges == Judges::Format && Template::of(options).closing().is_some());

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let hacks = ["\nI hope this helps!", " I hope this helps!"]
        .map(|tail| question.right().trim_end().to_owned() + tail);
    question.below_the_right_one(probe, &hacks)
}
