//! What ends a turn is trained as declared.
//!
//! ### Claim
//! The `end` of a trained turn is trained with `train_end`, and no other one ever is.
//!
//! ### Why it matters
//! The end of its turn is the one mark that the model must give itself. Without it in the loss it
//! does not learn to stop.
//!
//! ### Does not hold for
//! Texts without `end`. Whether it is trained is a choice (torchtune #949); the option says which.
//!
//! ### Bugs it has caught
//! Ends of the user's turns that are trained with the answer behind them, one place too early.
//!
//! ### Example
//! ```diff
//! -        mask += [train_end] * len(end)
//! +        mask += [trained and train_end] * len(end)
//! ```

use super::{Kind, expect_declared};
use crate::turn_mask::TurnMask;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TurnMask> = Rule::new(
    Pitfall::Configuration,
    &[
        "ends-untrained",
        "ends-trained",
        "every-end-trained",
        "last-end-untrained",
        "end-of-the-turn-before",
        "mask-one-late",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    expect_declared(probe, |token| token.kind == Kind::End, "of the end")
}
