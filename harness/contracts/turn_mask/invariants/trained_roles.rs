//! The content of the declared turns is trained, all of it, and of no others.
//!
//! ### Claim
//! The mask is 1 at every content token of a trained turn and 0 at those of all other turns.
//!
//! ### Why it matters
//! A model that is trained on what users and tools say learns to say it: it answers its own
//! questions and invents what a tool would return. One that misses part of its answers learns to
//! stop early or never.
//!
//! ### Does not hold for
//! Marks, of which other invariants speak.
//!
//! ### Bugs it has caught
//! trl #1185: marks are paired as if a user always began. transformers #47325: an answer that ends
//! at index 0 trains the whole conversation. transformers #34494: an answer that is cut off is not
//! trained at all.
//!
//! ### Example
//! ```diff
//! -        trained = role not in (SYSTEM, USER)
//! +        trained = role == ASSISTANT
//! ```

use super::{Kind, expect_declared};
use crate::turn_mask::TurnMask;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TurnMask> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "pairing-assumes-the-order",
        "end-at-zero-is-falsy",
        "cut-answer-untrained",
        "retokenised",
        "until-the-first-end-id",
        "tools-trained",
        "answer-without-a-user-untrained",
        "mask-inverted",
        "cut-texts-untrained",
        "users-trained",
        "only-the-last-answer",
        "only-the-first-answer",
        "every-turn-trained",
        "all-answers-for-the-last",
        "last-turn-for-the-last-answer",
        "last-answer-for-the-last-turn",
        "mask-one-late",
        "first-token-untrained",
        "last-token-untrained",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    expect_declared(probe, |token| token.kind == Kind::Content, "of the content")
}
