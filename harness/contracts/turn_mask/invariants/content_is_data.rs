//! A mark in the content is content.
//!
//! ### Claim
//! Content that has the ids of marks is trained as other content is.
//!
//! ### Why it matters
//! People write marks into messages, tools return them, and models sample them. A mask that is
//! found by searching for marks ends there, or begins.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Search-R1 #20, slime #330: text that is decoded and encoded again has other tokens, and the mask
//! moves. Masks that end at the first end id of an answer.
//!
//! ### Example
//! ```diff
//! -        said = (content + end).index(end[0])
//! -        mask += [False] * len(header) + [trained] * said + [False] * (len(content) - said)
//! +        mask += [False] * len(header) + [trained] * len(content)
//! ```

use crate::turn_mask::TurnMask;
use crate::turn_mask::generate::{marks, words};
use shakedown_core::contract::prelude::*;
use shakedown_core::value::text::one_line;

pub(super) const RULE: Rule<TurnMask> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["until-the-first-end-id", "retokenised", "marks-searched-for", "marks-in-content-untrained"],
    check,
);

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    let before = probe.finite_output()?;
    let Some(mask) = &before.output.mask else { return Err(Stop::Vacuous) };
    let mut ids = marks(probe.options);
    let plain: Vec<i64> = words(probe.options).take(2).collect();
    ids.push(plain[0]);
    let mut changed = probe.case.clone();
    for turn in &mut changed.turns {
        for id in &mut turn.tokens {
            *id = *probe.pick.one(&ids);
        }
    }
    if changed == *probe.case {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&changed)?;
    let Some(after) = &after.mask else { return Err(Stop::Vacuous) };
    if after != mask {
        let changed = one_line(&changed);
        broken!("with {changed} the mask is {after}, before it was {mask}");
    }
    Ok(())
}
