//! The prompt is not scored.
//!
//! ### Claim
//! The gold answer in the prompt, bare or in the declared form, changes no score.
//!
//! ### Why it matters
//! Prompts hold examples and hints. A function that reads prompt and completion as one text finds
//! the answer there, whatever the policy says.
//!
//! ### Does not hold for
//! `judges: none`.
//!
//! ### Bugs it has caught
//! Reward functions on the decoded sequence, prompt included; trl #6802: a stop token of the prompt
//! taken for one of the completion.
//!
//! ### Example
//! ```diff
//! -    texts = [prompt + completion for prompt, completion in zip(prompts, completions)]
//! -    for completion, answer in zip(texts, answers):
//! +    for completion, answer in zip(completions, answers):
//! ```

use crate::reward_function::probes::{Question, differ};
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::RewardDecodingMismatch, &["prompt-read-too"], check)
        .under(|options| options.judges != Judges::None);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let mut texts = vec![probe.case.completions[0].clone(), String::new(), question.right()];
    texts.extend(question.wrong().first().map(|wrong| question.answered(wrong)));
    let before = question.scores(probe, &texts)?;
    for hint in [question.gold.clone(), question.right()] {
        let mut case = question.case(&texts);
        case.prompts.fill(format!("{} {hint}", question.prompt).trim_start().to_owned());
        let after = probe.call(&case)?.rewards;
        for (row, text) in texts.iter().enumerate() {
            if differ(probe, after[row], before[row]) {
                broken!(
                    "with {} in the prompt, {} scores {}, without it {}",
                    quoted(&hint),
                    quoted(text),
                    rounded(after[row]),
                    rounded(before[row])
                );
            }
        }
    }
    Ok(())
}
