//! A micro-batch without a token changes nothing.
//!
//! ### Claim
//! A micro-batch more, in which every token is masked, changes nothing.
//!
//! ### Why it matters
//! A shard of prompts that were all filtered out, a window's end: its own mean is 0/0, and NaN in
//! one micro-batch is NaN in every weight after the step. Where its 0 is averaged in, the step is
//! too small.
//!
//! ### Does not hold for
//! Means over rows with `empty_rows: count`, in which its rows count.
//!
//! ### Bugs it has caught
//! verl's and OpenRLHF's masked means, which are NaN over no token; means of means.
//!
//! ### Example
//! ```diff
//! -        loss = loss + losses[mask].mean() * mask.sum() / tokens
//! +        loss = loss + losses.sum() / tokens
//! ```

use ndarray::Array2;

use super::{same_loss, with_tokens};
use crate::accumulated_loss::{AccumulatedLoss, MicroBatch};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AccumulatedLoss> = Rule::new(
    Pitfall::StabilityConstant,
    &["mean-of-micro-batch-means", "divided-again-by-micro-batches"],
    check,
)
.under(|options| {
    let of_tokens = matches!(options.aggregate, Aggregate::TokenMean | Aggregate::TokenSum);
    of_tokens || options.empty_rows == EmptyRows::Skip
});

fn check(probe: &mut Probe<'_, AccumulatedLoss>) -> Outcome {
    with_tokens(probe)?;
    let mut more = probe.case.clone();
    let at = probe.pick.below(more.micro_batches.len() + 1);
    let shape = (1 + probe.pick.below(2), 1 + probe.pick.below(3));
    let empty = MicroBatch {
        token_losses: Array2::from_elem(shape, 1.0),
        mask: Array2::from_elem(shape, false),
    };
    more.micro_batches.insert(at, empty);
    let what = format!("with a micro-batch {at} more that has no token");
    same_loss(probe, &more, 1.0, &what)
}
