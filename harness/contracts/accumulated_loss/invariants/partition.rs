//! It does not matter where a batch is cut into micro-batches.
//!
//! ### Claim
//! Every partition into micro-batches gives the loss and the gradient of the whole batch.
//!
//! ### Why it matters
//! The micro-batch size is a question of memory. Where it changes the loss, tokens of short
//! micro-batches weigh more than those of long ones, and a run cannot be compared with itself on
//! other hardware.
//!
//! ### Does not hold for
//! Objectives that normalise each micro-batch on purpose: TRL's `bnpo` is another one.
//!
//! ### Bugs it has caught
//! transformers #34191 and its siblings in a dozen libraries: a mean of means. verl #141: one
//! divisor for uneven rows. torchtune #2172: means of ranks averaged.
//!
//! ### Example
//! ```diff
//! -        loss = loss + losses.sum() / mask.sum().clamp(min=1) / len(masks)
//! +        loss = loss + losses.sum() / tokens
//! ```

use ndarray::Axis;

use super::{same_loss, with_tokens};
use crate::accumulated_loss::generate::taken;
use crate::accumulated_loss::{AccumulatedLoss, AccumulatedLossCase, gradient_field, joined};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<AccumulatedLoss> = Rule::new(
    Pitfall::Aggregation,
    &[
        "mean-of-micro-batch-means",
        "per-rank-means-averaged",
        "divisor-fixed-for-uneven-rows",
        "scaled-twice-in-the-report",
        "averaged-where-summed",
        "last-short-micro-batch-dropped",
    ],
    check,
);

fn check(probe: &mut Probe<'_, AccumulatedLoss>) -> Outcome {
    with_tokens(probe)?;
    let whole = AccumulatedLossCase { micro_batches: vec![joined(probe.case)] };
    let rows = whole.micro_batches[0].mask.nrows();
    if probe.case.micro_batches.len() > 1 {
        same_loss(probe, &whole, 1.0, "in one micro-batch")?;
        same_gradient(probe, &whole)?;
    }
    if rows < 2 {
        return if probe.case.micro_batches.len() > 1 { Ok(()) } else { Err(Stop::Vacuous) };
    }
    // Another partition: the rows one by one, or cut in two somewhere.
    let cuts: Vec<usize> = match probe.pick.below(2) {
        0 => (1..rows).collect(),
        _ => vec![1 + probe.pick.below(rows - 1)],
    };
    let starts = [&[0], &cuts[..]].concat();
    let ends = [&cuts[..], &[rows]].concat();
    let parts = starts.iter().zip(ends).map(|(start, end)| {
        taken(&whole.micro_batches[0], Axis(0), &(*start..end).collect::<Vec<_>>())
    });
    let other = AccumulatedLossCase { micro_batches: parts.collect() };
    let what = format!("with the rows cut into {} micro-batches", other.micro_batches.len());
    same_loss(probe, &other, 1.0, &what)
}

/// Each token has the gradient that it has in the whole batch.
fn same_gradient(probe: &mut Probe<'_, AccumulatedLoss>, whole: &AccumulatedLossCase) -> Outcome {
    if matches!(probe.gradients(), Gradients::None(_)) {
        return Ok(());
    }
    let parts = probe.gradient_output()?;
    let together = probe.call_with(whole, true)?;
    let (parts, together) = (&parts.output.grad_micro_batches, together.output.grad_micro_batches);
    let [together] = &together[..] else { return Ok(()) };
    let expected = AccumulatedLoss::oracle_gradient(probe.case, probe.options, probe.place.dtype);
    let mut first = 0;
    for (k, part) in parts.iter().enumerate() {
        let bounds = 2.0 * probe.bounds_in(&expected, gradient_field(k));
        for ((row, column), found) in part.token_losses.indexed_iter() {
            // Another shape is the business of the law `gradient`.
            let Some(expected) = together.token_losses.get([first + row, column]) else {
                return Ok(());
            };
            let allowed = bounds.get([row, column]).copied().unwrap_or(f64::INFINITY);
            if apart(*found, *expected, allowed) {
                let [found, expected] = pair(*found, *expected);
                broken!(
                    "grad_micro_batches[{k}].token_losses[{row}, {column}] is {found}, but \
                     {expected} where all rows are one micro-batch; allowed difference \
                     {allowed:.1e}"
                );
            }
        }
        first += part.token_losses.nrows();
    }
    Ok(())
}
