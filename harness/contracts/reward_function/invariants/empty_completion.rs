//! Saying nothing is never the best that one can do.
//!
//! ### Claim
//! An empty completion scores less than the well-formed one with the gold answer.
//!
//! ### Why it matters
//! Silence is the easiest thing to learn. It pays wherever an empty answer is contained in the gold
//! answer, or a failed comparison counts as a success.
//!
//! ### Does not hold for
//! `judges: none`.
//!
//! ### Bugs it has caught
//! open-instruct #1683: containment the wrong way round passes empty completions. ROLL 9c6ce5c0:
//! all scores 0.
//!
//! ### Example
//! ```diff
//! -    return 1.0 if given in answer else 0.0
//! +    return 1.0 if given and given == answer.strip() else 0.0
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &["scores-replaced-by-zeros", "unparsable-gold-scores-full"],
    check,
)
.under(|options| options.judges != Judges::None);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let (right, scores) = question.scores_beside_the_right_one(probe, &[String::new()])?;
    if scores[0] >= right {
        broken!(
            "an empty completion scores {}, {} scores {}; the gold answer is {}",
            rounded(scores[0]),
            quoted(&question.right()),
            rounded(right),
            quoted(&question.gold)
        );
    }
    Ok(())
}
