//! A loss that is the same everywhere is its own mean.
//!
//! ### Claim
//! Where every token has the loss c, the loss is c.
//!
//! ### Why it matters
//! The one value that everybody knows without a computer, whatever the lengths and the partition.
//! Every denominator that is not the number of what was added shows.
//!
//! ### Does not hold for
//! Sums; and rows without a token where they are counted: only `token-mean`, and
//! `seq-mean-token-mean` with `empty_rows: skip`.
//!
//! ### Bugs it has caught
//! transformers #35438: the count of one sub-step. unsloth-zoo #1023: divided once more.
//! LLaMA-Factory #10705: a window that is shorter than configured.
//!
//! ### Example
//! ```diff
//! -    tokens = masks[0].sum().clamp(min=1)
//! +    tokens = sum(mask.sum() for mask in masks).clamp(min=1)
//! ```

use super::{bound, number, with_tokens};
use crate::accumulated_loss::{AccumulatedLoss, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AccumulatedLoss> = Rule::new(
    Pitfall::Aggregation,
    &[
        "count-of-one-sub-step",
        "divided-again-by-micro-batches",
        "micro-batches-summed",
        "short-last-window",
        "masked-tokens-in-the-denominator",
    ],
    check,
)
.under(is_mean);

/// Whether the weights of all tokens add up to 1.
pub(super) fn is_mean(options: &Options) -> bool {
    match options.aggregate {
        Aggregate::TokenMean => true,
        Aggregate::SeqMeanTokenMean => options.empty_rows == EmptyRows::Skip,
        _ => false,
    }
}

fn check(probe: &mut Probe<'_, AccumulatedLoss>) -> Outcome {
    with_tokens(probe)?;
    let constant = *probe.pick.one(&[1.0, -2.0, 0.5, 3.0]);
    let mut flat = probe.case.clone();
    for part in &mut flat.micro_batches {
        for (loss, kept) in part.token_losses.iter_mut().zip(&part.mask) {
            *loss = if *kept { constant } else { *loss };
        }
    }
    let found = number(&probe.call(&flat)?);
    let expected = probe.expected_of(&flat);
    let allowed = bound(&probe.bounds_in(&expected, "loss"));
    if apart(found, constant, allowed) {
        let [found, expected] = pair(found, constant);
        broken!("every token loss is {expected}, but the loss is {found} (± {allowed:.1e})");
    }
    Ok(())
}
