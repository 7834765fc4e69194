//! The least score is a score.
//!
//! ### Claim
//! Where the gold answer is scored, a wrong answer is a number too: 0 does not mean "no score".
//! [`correctness`]
//!
//! ### Why it matters
//! Code that tests a score for truth takes 0 for none: failed completions leave the statistics and
//! the group looks better than it is.
//!
//! ### Does not hold for
//! Other `judges`. Gold answers that are not scored.
//!
//! ### Bugs it has caught
//! OpenRLHF #1219: `scores or rewards` took the second where the first was 0.
//!
//! ### Example
//! ```diff
//! -        rewards.append(score or None)
//! +        rewards.append(score)
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::AdvantageNormalisation, &["zero-score-is-falsy"], check)
        .under(|options| options.judges == Judges::Correctness);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let wrong: Vec<String> =
        question.wrong().iter().map(|wrong| question.answered(wrong)).collect();
    let (right, scores) = question.scores_beside_the_right_one(probe, &wrong)?;
    for (text, score) in wrong.iter().zip(&scores) {
        if score.is_nan() {
            broken!(
                "{} scores NaN, expected a number below {}; the gold answer is {}",
                quoted(text),
                rounded(right),
                quoted(&question.gold)
            );
        }
    }
    Ok(())
}
