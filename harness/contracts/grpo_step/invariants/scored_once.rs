//! Every completion is scored once.
//!
//! ### Claim
//! Each reward function is asked about each completion once.
//!
//! ### Why it matters
//! A reward that is asked twice costs twice, and one that samples a judge gives two answers, of
//! which the logs show one and the loss uses the other. One that is not asked is a reward of 0.
//!
//! ### Does not hold for
//! Trainers that do not say it: without `scored` nothing is judged.
//!
//! ### Bugs it has caught
//! Planted: a second call for the metrics.
//!
//! ### Example
//! ```diff
//! -    outputs["scored"] = torch.full_like(rewards, 2)
//! +    outputs["scored"] = torch.ones_like(rewards)
//! ```

use crate::grpo_step::GrpoStep;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GrpoStep> = Rule::new(Pitfall::Sampling, &["scored-twice"], check);

fn check(probe: &mut Probe<'_, GrpoStep>) -> Outcome {
    let returned = probe.output()?;
    let Some(scored) = &returned.output.scored else { return Err(Stop::Vacuous) };
    for ((prompt, own, function), times) in scored.indexed_iter() {
        if *times != 1.0 {
            broken!(
                "reward function {function} is asked {times} times about completion {own} of \
                 prompt {prompt}, expected once"
            );
        }
    }
    Ok(())
}
