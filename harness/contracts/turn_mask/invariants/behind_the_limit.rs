//! A limit cuts the end off, and changes nothing before it.
//!
//! ### Claim
//! What stands behind the limit changes nothing before it.
//!
//! ### Why it matters
//! Long answers are the ones that are cut. An answer whose end is gone is still an answer; a
//! trainer that leaves it out learns from the short ones alone.
//!
//! ### Does not hold for
//! Texts that are not cut; rows that are left out on purpose.
//!
//! ### Bugs it has caught
//! transformers #34494: an answer whose end is behind the limit has no end, and is not trained.
//!
//! ### Example
//! Under `max_length=12`:
//! ```diff
//!          tokens += header + content + end
//! -        trained = role == ASSISTANT and len(tokens) <= max_length
//! +        trained = role == ASSISTANT
//! ```

use crate::turn_mask::oracle::{Kind, Token, left, text};
use crate::turn_mask::{Turn, TurnMask};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TurnMask> =
    Rule::new(Pitfall::MaskingAlignment, &["cut-at-the-mask-alone", "cut-answer-untrained"], check)
        .under(|options| options.max_length.is_some());

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    let before = probe.finite_output()?;
    let Some(mask) = &before.output.mask else { return Err(Stop::Vacuous) };
    let (all, left) = (text(probe.case, probe.options), left(probe.case, probe.options));
    if all.len() == left.len() {
        return Err(Stop::Vacuous);
    }
    // The turn in which the limit is becomes so short that its end fits, too.
    let turn = all[left.len()].turn;
    let inside = |token: &&Token| token.turn == turn && token.kind == Kind::Content;
    let kept = left.iter().filter(inside).count();
    let of = &probe.case.turns[turn];
    let tokens = of.tokens.to_vec();
    let end = probe.options.end.len();
    if kept <= end || kept == tokens.len() {
        return Err(Stop::Vacuous);
    }
    let mut shorter = probe.case.clone();
    shorter.turns[turn] = Turn::of(of.who(), &tokens[..kept - end]);
    let after = probe.call(&shorter)?;
    let Some(after) = &after.mask else { return Err(Stop::Vacuous) };
    let same = (left.len() - end).saturating_sub(probe.options.shifted());
    for (at, (before, after)) in mask.iter().zip(after).take(same).enumerate() {
        if before != after {
            let [before, after] = [*before, *after].map(number);
            broken!("mask[{at}] is {before}, and {after} where turn {turn} ends before the limit");
        }
    }
    Ok(())
}
