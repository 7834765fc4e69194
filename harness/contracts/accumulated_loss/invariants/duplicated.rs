//! Everything twice has the same mean, and twice the sum.
//!
//! ### Claim
//! The same micro-batches twice give the same mean, and twice the sum.
//!
//! ### Why it matters
//! More data of the same kind must not mean a larger step. A loss that grows with the number of
//! micro-batches is a learning rate that depends on the hardware.
//!
//! ### Does not hold for
//! Nothing: it holds for every aggregate.
//!
//! ### Bugs it has caught
//! prime-rl #816: divided by min(count, 1), which never divides. NeMo-RL #86: means of
//! micro-batches added up.
//!
//! ### Example
//! ```diff
//! -    tokens = sum(mask.sum() for mask in masks).clamp(max=1)
//! +    tokens = sum(mask.sum() for mask in masks).clamp(min=1)
//! ```

use super::{same_loss, with_tokens};
use crate::accumulated_loss::AccumulatedLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AccumulatedLoss> = Rule::new(
    Pitfall::Aggregation,
    &["divisor-min-for-max", "micro-batches-summed", "short-last-window"],
    check,
);

fn check(probe: &mut Probe<'_, AccumulatedLoss>) -> Outcome {
    with_tokens(probe)?;
    let mut twice = probe.case.clone();
    twice.micro_batches.extend(probe.case.micro_batches.iter().cloned());
    let factor = if probe.options.aggregate == Aggregate::TokenSum { 2.0 } else { 1.0 };
    same_loss(probe, &twice, factor, "with every micro-batch twice")
}
