//! One more correct tag is no step back.
//!
//! ### Claim
//! An incremental score does not fall when one more correct tag is put in its place. [`incremental-
//! format`]
//!
//! ### Why it matters
//! The score is there to lead from no form to the whole form one tag at a time; a step that costs
//! is a step that is never made.
//!
//! ### Does not hold for
//! Other `judges`. Templates of more than five marks are asked about their first five.
//!
//! ### Bugs it has caught
//! GRPO tutorial: the tag count takes the whole text for a tail when the last tag is missing.
//!
//! ### Example
//! Under `judges="incremental-format"`:
//! ```diff
//! -    unclosed = completion.count("<answer>") > completion.count("</answer>")
//! -    return 0.0 if unclosed else len(placed) / len(TAGS)
//! +    return len(placed) / len(TAGS)
//! ```

use crate::reward_function::probes::{Question, differ};
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::RewardDecodingMismatch, &["unclosed-tag-punished"], check)
        .under(|options| options.judges == Judges::IncrementalFormat);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let count = question.template.marks().len().min(5);
    let texts: Vec<String> = (0..1_usize << count).map(|kept| question.with(kept, count)).collect();
    let scores = question.scores(probe, &texts)?;
    for fewer in 0..texts.len() {
        for mark in (0..count).filter(|mark| fewer >> mark & 1 == 0) {
            let more = fewer | 1 << mark;
            if scores[more] < scores[fewer] && differ(probe, scores[more], scores[fewer]) {
                broken!(
                    "{} scores {}, but {} without {} scores {}",
                    quoted(&texts[more]),
                    rounded(scores[more]),
                    quoted(&texts[fewer]),
                    question.template.marks()[mark],
                    rounded(scores[fewer])
                );
            }
        }
    }
    Ok(())
}
