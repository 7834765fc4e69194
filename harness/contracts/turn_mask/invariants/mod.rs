//! What must hold of `turn-mask`: the laws that apply, and one file for each of its own.

use ndarray::Array1;

use crate::turn_mask::oracle::{Kind, Token, left};
use crate::turn_mask::{Options, TurnMask, TurnMaskCase};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<TurnMask>> {
    let mut all = laws::universal_and(&[("well-formed", &["mask-not-extended"])]);
    all.push(laws::oracle::law().catching(&[
        "pairing-assumes-the-order",
        "end-at-zero-is-falsy",
        "cut-answer-untrained",
        "first-and-last-only",
        "retokenised",
        "until-the-first-end-id",
        "bos-trained",
    ]));
    all.extend(own());
    all
}

invariants! {
    TurnMask;
    rendered_tokens,
    trained_roles,
    header,
    end,
    bos,
    labels,
    turns_independent,
    content_is_data,
    appended_turn,
    behind_the_limit,
}

/// The flag of each token that has one, with the token.
fn flags(
    mask: &Array1<f64>,
    case: &TurnMaskCase,
    options: &Options,
) -> Result<Vec<(usize, f64, Token)>, Stop> {
    let text = left(case, options);
    let from = options.shifted();
    if mask.len() != text.len().saturating_sub(from) {
        return Err(Stop::Vacuous); // the oracle speaks of it
    }
    let flags = mask.iter().enumerate();
    Ok(flags.map(|(at, flag)| (at, *flag, text[at + from])).collect())
}

/// Breaks the invariant where a flag of the tokens of some kinds is not the declared one.
fn expect_declared(
    probe: &mut Probe<'_, TurnMask>,
    of: impl Fn(&Token) -> bool,
    what: &str,
) -> Outcome {
    let returned = probe.finite_output()?;
    let Some(mask) = &returned.output.mask else { return Err(Stop::Vacuous) };
    let mut checked = false;
    for (at, flag, token) in flags(mask, probe.case, probe.options)? {
        if !of(&token) {
            continue;
        }
        checked = true;
        if flag != f64::from(token.trained) {
            let whose = match token.kind {
                Kind::Bos => String::new(),
                _ => format!(" of turn {}", token.turn),
            };
            let (flag, expected) = (number(flag), u8::from(token.trained));
            let id = token.id;
            broken!("mask[{at}] is {flag}, expected {expected}: {id} is {what}{whose}");
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
