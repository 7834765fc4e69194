//! What begins the text is never trained.
//!
//! ### Claim
//! The ids of `bos` are not trained, whatever is.
//!
//! ### Why it matters
//! Nothing stands before the first token that could predict it. With the shift its loss is lost or
//! lands on another token, and counts in every mean.
//!
//! ### Does not hold for
//! Texts without `bos`.
//!
//! ### Bugs it has caught
//! Conversations that begin with an answer, whose first mark is taken for part of it.
//!
//! ### Example
//! ```diff
//! -    tokens, mask = list(bos), [True] * len(bos)
//! +    tokens, mask = list(bos), [False] * len(bos)
//! ```

use super::{Kind, expect_declared};
use crate::turn_mask::TurnMask;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TurnMask> =
    Rule::new(Pitfall::MaskingAlignment, &["bos-trained", "everything-but-prompts"], check);

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    expect_declared(probe, |token| token.kind == Kind::Bos, "of the beginning")
}
