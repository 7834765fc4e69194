//! How the answer was found has no part in whether it is right.
//!
//! ### Claim
//! Replacing the reasoning changes no score. [`correctness`]
//!
//! ### Why it matters
//! A score that depends on the reasoning by accident, on its length, its line breaks or the numbers
//! in it, trains these accidents.
//!
//! ### Does not hold for
//! Other `judges`. Reasonings with a marker or the gold answer in them. Scores that depend on the
//! length of a completion on purpose.
//!
//! ### Bugs it has caught
//! open-r1 #237: line breaks. Functions that take the first number of a completion for its answer.
//!
//! ### Example
//! ```diff
//! -    found = re.findall(r"-?\d+", completion)
//! -    given = found[0] if found else ""
//! +    found = ANSWER.findall(completion)
//! +    given = found[-1].strip() if found else ""
//! ```

use crate::reward_function::probes::{Question, differ};
use crate::reward_function::template::Template;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &["first-number-wins", "length-rewarded", "markup-breaks-the-parser"],
    check,
)
.under(|options| options.judges == Judges::Correctness && Template::of(options).reasons());

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let reasonings = question.reasonings();
    let wrong = question.wrong();
    for answer in [&question.gold, &wrong[0]] {
        let texts: Vec<String> =
            reasonings.iter().map(|text| question.template.render(text, answer)).collect();
        let scores = question.scores(probe, &texts)?;
        for (text, score) in texts.iter().zip(&scores) {
            if differ(probe, *score, scores[0]) {
                broken!(
                    "{} scores {}, but {} scores {}; the gold answer is {}",
                    quoted(text),
                    rounded(*score),
                    quoted(&texts[0]),
                    rounded(scores[0]),
                    quoted(&question.gold)
                );
            }
        }
    }
    Ok(())
}
