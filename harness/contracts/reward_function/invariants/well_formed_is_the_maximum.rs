//! Nothing scores higher than the gold answer in the declared form.
//!
//! ### Claim
//! A well-formed completion with the gold answer gets the maximum that the function ever gives.
//!
//! ### Why it matters
//! What scores highest is what the policy will produce. A right completion that scores less,
//! because its reasoning has two lines or a tag count likes repetition, is trained away.
//!
//! ### Does not hold for
//! `judges: none`. With `incremental-format` the completion is compared with what is left of itself
//! without some tags, or with too many of them.
//!
//! ### Bugs it has caught
//! open-r1 #237: any line break in the reasoning scored 0. verifiers #276: gold compared with the
//! whole text.
//!
//! ### Example
//! Under `judges="format"`:
//! ```diff
//! -FORM = re.compile(r"<reasoning>\n.*\n</reasoning>\n<answer>\n.*\n</answer>")
//! +FORM = re.compile(r"<reasoning>\n.*\n</reasoning>\n<answer>\n.*\n</answer>", re.DOTALL)
//! ```

use crate::reward_function::probes::{PLAIN, Question, differ};
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> = Rule::new(
    Pitfall::RewardDecodingMismatch,
    &[
        "identity-parser",
        "format-regex-without-dotall",
        "every-tag-counted-again",
        "strips-nothing",
    ],
    check,
)
.under(|options| options.judges != Judges::None);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let mut right = vec![PLAIN.to_owned()];
    if probe.options.judges != Judges::Correctness && question.template.reasons() {
        right = question.reasonings();
        // Counters that take the whole text for a tail have other scores for longer ones.
        let incremental = probe.options.judges == Judges::IncrementalFormat;
        right.retain(|reasoning| !incremental || reasoning.len() < 100);
    }
    for reasoning in &right {
        let mut others = Vec::new();
        if probe.options.judges == Judges::IncrementalFormat {
            others.extend(question.degraded(reasoning));
        } else {
            others.push(probe.case.completions[0].clone());
            if reasoning == PLAIN {
                others.extend(question.shapes(reasoning));
                others.push(question.answered(&question.wrong()[0]));
            } else {
                others.push(question.right());
            }
        }
        let completion = question.template.render(reasoning, &question.gold);
        let mut all = vec![completion.clone()];
        all.extend(others);
        let scores = question.scores(probe, &all)?;
        for (other, score) in all.iter().zip(&scores) {
            if *score > scores[0] && differ(probe, *score, scores[0]) {
                broken!(
                    "{} scores {}, more than {} with {}, which is well-formed and right",
                    quoted(other),
                    rounded(*score),
                    rounded(scores[0]),
                    quoted(&completion)
                );
            }
        }
    }
    Ok(())
}
