//! Functions on candle tensors, right and wrong.

use candle_core::{D, DType, Result, Tensor};

/// log softmax of the logits, at each token.
fn log_probs(logits: &Tensor, tokens: &Tensor) -> Result<Tensor> {
    let shifted = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?.detach())?;
    let normaliser = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
    let all = shifted.broadcast_sub(&normaliser)?;
    all.gather(&tokens.unsqueeze(D::Minus1)?, D::Minus1)?.squeeze(D::Minus1)
}

#[shakedown::contract(token_log_probs, tensors = shakedown_candle, .without_corpora())]
fn right_log_probs(logits: &Tensor, tokens: &Tensor) -> Result<Tensor> {
    log_probs(logits, tokens)
}

#[shakedown::contract(token_log_probs, tensors = shakedown_candle, .without_corpora())]
#[should_panic(expected = "gradient")]
fn detached_log_probs(logits: &Tensor, tokens: &Tensor) -> Result<Tensor> {
    log_probs(&logits.detach(), tokens)
}

#[shakedown::contract(
    group_advantage,
    scale = "none",
    tensors = shakedown_candle,
    .without_corpora(),
)]
fn dr_grpo(rewards: &Tensor, groups: &Tensor) -> Result<Tensor> {
    let dtype = rewards.dtype();
    let same = groups.unsqueeze(1)?.broadcast_eq(&groups.unsqueeze(0)?)?.to_dtype(DType::F64)?;
    let sums = same.matmul(&rewards.to_dtype(DType::F64)?.unsqueeze(1)?)?.squeeze(1)?;
    let means = (sums / same.sum(1)?)?;
    (rewards.to_dtype(DType::F64)? - means)?.to_dtype(dtype)
}

#[shakedown::contract(
    group_advantage,
    scale = "none",
    tensors = shakedown_candle,
    .without_corpora(),
)]
#[should_panic(expected = "baseline-missing")]
fn without_a_baseline(rewards: &Tensor) -> Tensor {
    rewards.clone()
}

#[shakedown::contract(group_advantage, tensors = shakedown_candle, .without_corpora())]
#[should_panic(expected = "an error: ")]
fn an_error_is_a_finding(rewards: &Tensor, groups: &Tensor) -> Result<Tensor> {
    rewards.matmul(groups)
}
