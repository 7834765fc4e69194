//! Nothing is no answer to nothing.
//!
//! ### Claim
//! An empty or white gold answer with an empty answer never gets the maximum. [`correctness`]
//!
//! ### Why it matters
//! A row whose gold answer was lost compares equal to a row without an answer: missing data teaches
//! to say nothing.
//!
//! ### Does not hold for
//! Other `judges`. A component that raises for a blank gold answer is as good as one that gives no
//! score.
//!
//! ### Bugs it has caught
//! open-r1 #566: what could not be parsed on both sides scored 1.
//!
//! ### Example
//! ```diff
//! -    return 1.0 if given == answer.strip() else 0.0
//! +    return 1.0 if given and given == answer.strip() else 0.0
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::RewardDecodingMismatch, &["blank-gold-matches-a-blank-answer"], check)
        .under(|options| options.judges == Judges::Correctness);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let (right, _) = question.scores_beside_the_right_one(probe, &[])?;
    let empty = ["", " ", "\n"].map(|answer| question.answered(answer));
    for gold in ["", " "] {
        let mut case = question.case(&empty);
        case.answers.fill(gold.to_owned());
        let options = probe.options;
        // Raising is no score, and so not the maximum.
        let Ok(output) = probe.call_under(&case, options) else { continue };
        let full = output.rewards.iter().position(|score| *score >= right);
        if let Some(row) = full {
            broken!(
                "with the gold answer {}, {} scores {}, as much as a right answer ({})",
                quoted(gold),
                quoted(&empty[row]),
                rounded(output.rewards[row]),
                rounded(right)
            );
        }
    }
    Ok(())
}
