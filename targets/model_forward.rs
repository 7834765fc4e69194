//! `model-forward` on tensors: a small model of one layer of attention.

use shakedown::author::Component;
use shakedown::contracts::model_forward::{
    ModelForward, ModelForwardCase, ModelForwardOutput, Options,
};
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<ModelForward> {
    tch::<ModelForward>(move |case| model_forward(case, &options))
}

/// The logits behind each token.
///
/// # Shapes
/// As the contract's.
///
/// # Units
/// Logits, in f64: no input says another format.
///
/// # Errors
/// None. Under padding there is a number.
///
/// # Source
/// Vaswani et al. 2017, arXiv:1706.03762, with learned positions, one head, and no projection.
pub fn model_forward(
    case: &ModelForwardCase<Tensors>,
    options: &Options,
) -> ModelForwardOutput<Tensors> {
    let mask = case.attention_mask.to_kind(Kind::Int64);
    let positions = match &case.position_ids {
        Some(positions) => positions.shallow_clone(),
        None => (mask.cumsum(1, Kind::Int64) - 1).clamp_min(0),
    };
    let sequence = (positions.eq(0) * &mask).cumsum(1, Kind::Int64);
    let seen = sequence.unsqueeze(2).eq_tensor(&sequence.unsqueeze(1))
        * mask.unsqueeze(1).to_kind(Kind::Bool);
    let hidden = vectors(&case.input_ids, 1.7) + vectors(&positions, 0.9);
    let scores = hidden.matmul(&hidden.transpose(1, 2));
    let hidden_from = seen.tril(0).logical_not();
    let weights = scores.masked_fill(&hidden_from, -1e9).softmax(-1, None);
    let hidden = &hidden + weights.matmul(&hidden);
    let entries = Tensor::arange(options.vocabulary, (Kind::Int64, hidden.device()));
    let logits = hidden.matmul(&vectors(&entries, 1.3).transpose(0, 1));
    ModelForwardOutput { logits, cached_logits: None }
}

/// A vector for each number, along a new last axis.
fn vectors(numbers: &Tensor, step: f64) -> Tensor {
    let kind = Kind::Double;
    let width = Tensor::arange(4, (kind, numbers.device())) + 1.0;
    ((numbers.to_kind(kind) + 1.0).unsqueeze(-1) * width * step).sin()
}
