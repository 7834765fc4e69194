//! What is said in one turn does not decide what is trained of another.
//!
//! ### Claim
//! The mask of a turn does not depend on the content of the others.
//!
//! ### Why it matters
//! Whose turn it is decides, and no more. Where the content of one turn changes the mask of the
//! next, users can write what is trained.
//!
//! ### Does not hold for
//! Texts with a limit, in which a longer turn leaves less room for the others.
//!
//! ### Bugs it has caught
//! trl #1185: marks that were found by searching move the masks of all turns behind them.
//!
//! ### Example
//! ```diff
//! -    answers, users = ((tokens == role_ids[role]).cumsum(0) for role in (ASSISTANT, USER))
//! -    mask = answers >= users
//! +    mask = torch.tensor(mask)[:max_length]
//! ```

use super::flags;
use crate::turn_mask::generate::words;
use crate::turn_mask::{Turn, TurnMask};
use shakedown_core::contract::prelude::*;
use shakedown_core::value::text::one_line;

pub(super) const RULE: Rule<TurnMask> =
    Rule::new(Pitfall::MaskingAlignment, &["retokenised", "end-at-zero-is-falsy"], check)
        .under(|options| options.max_length.is_none());

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    let before = probe.finite_output()?;
    let Some(mask) = &before.output.mask else { return Err(Stop::Vacuous) };
    let turns = &probe.case.turns;
    if turns.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let kept = probe.pick.below(turns.len());
    let plain: Vec<i64> = words(probe.options).take(3).collect();
    let mut others = probe.case.clone();
    for (at, turn) in others.turns.iter_mut().enumerate() {
        if at != kept {
            let length = probe.pick.below(4);
            let tokens: Vec<i64> = (0..length).map(|_| *probe.pick.one(&plain)).collect();
            *turn = Turn::of(turn.who(), &tokens);
        }
    }
    let after = probe.call(&others)?;
    let Some(other_mask) = &after.mask else { return Err(Stop::Vacuous) };
    // From its second token on: the first of all has no flag where they are shifted.
    let of = |flags: Vec<(usize, f64, super::Token)>| -> Vec<f64> {
        let own = flags
            .into_iter()
            .filter(|(_, _, token)| token.turn == kept && token.kind != super::Kind::Bos);
        own.map(|(_, flag, _)| flag).collect()
    };
    let before = of(flags(mask, probe.case, probe.options)?);
    let after = of(flags(other_mask, &others, probe.options)?);
    let shorter = before.len().min(after.len());
    let [before, after] = [before, after].map(|of| of[of.len() - shorter..].to_vec());
    if before != after {
        let others = one_line(&others);
        broken!("with {others} the mask of turn {kept} is {after:?}, before it was {before:?}");
    }
    Ok(())
}
