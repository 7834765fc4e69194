//! `accumulated-loss` on tensors: micro-batches that give the loss and gradient of their batch.

use shakedown::author::Component;
use shakedown::contracts::accumulated_loss::{AccumulatedLoss, Options};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;
use crate::masked::Reduction;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<AccumulatedLoss> {
    let reduction = Reduction {
        aggregate: options.aggregate,
        norm_length: options.norm_length,
        empty_rows: options.empty_rows,
        empty_mask: options.empty_mask,
    };
    tch::<AccumulatedLoss>(move |case| {
        let parts = case.micro_batches.iter().map(|part| (&part.token_losses, &part.mask));
        accumulated_loss(&parts.collect::<Vec<_>>(), &reduction)
    })
}

/// The loss of a step that is taken in micro-batches; differentiable.
///
/// Numerators and denominators are added up apart and divided once, at the end: a mean of means
/// weights the tokens of a short micro-batch more than others.
///
/// # Shapes
/// Of each micro-batch, losses of tokens and mask, `[n, t]`, where both numbers may differ from
/// one to the next; the result is a scalar.
///
/// # Units
/// Those of the losses. Half formats are answered in f32.
///
/// # Errors
/// Panics without a micro-batch, where `norm_length` is missing, and without a token with
/// `empty_mask: refuse`.
///
/// # Source
/// transformers #34191, which counts the tokens of the whole step first; verl `batch_num_tokens`.
pub fn accumulated_loss(micro_batches: &[(&Tensor, &Tensor)], reduction: &Reduction) -> Tensor {
    micro_batches
        .iter()
        .map(|(losses, mask)| reduction.part(&losses.to_kind(arithmetic(losses.kind())), mask))
        .reduce(|sum, part| sum.and(part))
        .expect("a step has at least one micro-batch")
        .whole(reduction)
}
