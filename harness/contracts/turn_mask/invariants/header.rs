//! What stands before the content is trained as declared.
//!
//! ### Claim
//! `start` and the role's id are trained in a trained turn with `train_header`, and else never.
//!
//! ### Why it matters
//! The sampler is given the header of its answer. A trainer that trains it spends loss on tokens
//! that the policy never chose, one in each turn, and learns to open turns of its own.
//!
//! ### Does not hold for
//! Texts without `start` and role.
//!
//! ### Bugs it has caught
//! A response template that is one token too short, so that the role of each answer is trained.
//!
//! ### Example
//! ```diff
//! -        mask += [False] * len(start) + [trained] * (1 + len(content))
//! +        mask += [False] * len(header) + [trained] * len(content)
//! ```

use super::{Kind, expect_declared};
use crate::turn_mask::TurnMask;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TurnMask> = Rule::new(
    Pitfall::Configuration,
    &["headers-trained", "headers-untrained", "role-id-trained", "start-trained", "mask-one-early"],
    check,
);

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    expect_declared(probe, |token| token.kind == Kind::Header, "of the header")
}
