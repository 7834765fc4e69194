//! The text has every token of the conversation.
//!
//! ### Claim
//! The tokens are `bos`, then each turn's `start`, role, content and `end`, as far as `max_length`.
//!
//! ### Why it matters
//! A turn that is lost on the way is context that the sampler had and the trainer has not. Text
//! that was decoded and encoded again has other tokens than those that were sampled.
//!
//! ### Does not hold for
//! Outputs without tokens; templates that leave something out on purpose.
//!
//! ### Bugs it has caught
//! slime 882433bb9: the first message is the prompt and the last one the answer, and what stands
//! between them is lost.
//!
//! ### Example
//! ```diff
//! -    for turn in (turns[0], turns[-1]):
//! +    for turn in turns:
//! ```

use crate::turn_mask::TurnMask;
use crate::turn_mask::oracle::left;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TurnMask> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &[
        "first-and-last-only",
        "empty-turns-dropped",
        "bos-left-out",
        "system-left-out",
        "neighbours-merged",
        "last-end-left-out",
        "end-cut-short",
        "bos-beyond-the-limit",
        "bos-before-each-turn",
        "neighbours-joined",
        "last-tokens-kept",
        "limit-ignored",
        "ids-in-sixteen-bits",
        "roles-exchanged",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    let returned = probe.output()?;
    let Some(found) = &returned.output.tokens else { return Err(Stop::Vacuous) };
    let text = left(probe.case, probe.options);
    if found.len() != text.len() {
        broken!("there are {} tokens, expected {}", found.len(), text.len());
    }
    for (at, (found, token)) in found.iter().zip(&text).enumerate() {
        if *found != token.id as f64 {
            broken!("tokens[{at}] is {}, expected {}", number(*found), token.id);
        }
    }
    Ok(())
}
