//! The order of the micro-batches does not matter.
//!
//! ### Claim
//! Micro-batches in another order give the same loss.
//!
//! ### Why it matters
//! Order is what a scheduler makes of it. What depends on it knows the first or the last
//! micro-batch only: a value that is overwritten, a count that is taken once.
//!
//! ### Does not hold for
//! A single micro-batch, and those that are all the same.
//!
//! ### Bugs it has caught
//! verl #2259: the reported value is overwritten by each micro-batch. transformers #35438: divided
//! by the count of one of them.
//!
//! ### Example
//! ```diff
//! -        loss = losses.sum() / tokens
//! +        loss = loss + losses.sum() / tokens
//! ```

use super::{same_loss, with_tokens};
use crate::accumulated_loss::{AccumulatedLoss, AccumulatedLossCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AccumulatedLoss> = Rule::new(
    Pitfall::Aggregation,
    &["last-micro-batch-reported", "count-of-one-sub-step", "cut-to-the-first-width"],
    check,
);

fn check(probe: &mut Probe<'_, AccumulatedLoss>) -> Outcome {
    with_tokens(probe)?;
    let parts = &probe.case.micro_batches;
    let order = probe.pick.shuffled(parts.len());
    let micro_batches: Vec<_> = order.iter().map(|place| parts[*place].clone()).collect();
    if micro_batches.iter().zip(parts).all(|(new, old)| same_bits(new, old)) {
        return Err(Stop::Vacuous);
    }
    let what = format!("with the micro-batches in the order {order:?}");
    same_loss(probe, &AccumulatedLossCase { micro_batches }, 1.0, &what)
}
