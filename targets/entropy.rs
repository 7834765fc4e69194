//! `token-entropy` on tensors: how undecided the policy is at each position.

use shakedown::author::Component;
use shakedown::contracts::token_entropy::{NegInf, Options, TokenEntropy};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<TokenEntropy> {
    tch::<TokenEntropy>(move |case| token_entropy(&case.logits, &options))
}

/// The entropy of the distribution at each position; differentiable.
///
/// # Shapes
/// `N` rows of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, the result `[N, T]`.
///
/// # Units
/// Nats, from 0 to ln `V`. Half formats are answered in f32.
///
/// # Errors
/// None. A logit of -inf gives NaN, unless `neg_inf: zero` takes the limit of p ln p at 0.
///
/// # Source
/// TRL `entropy_from_logits`. verl's form, logsumexp(z) - Σ p z, is the difference of two numbers
/// as large as the logits, and loses their digits.
pub fn token_entropy(logits: &Tensor, options: &Options) -> Tensor {
    let scaled = logits.to_kind(arithmetic(logits.kind())) / options.temperature;
    let log_probs = scaled.log_softmax(-1, None);
    let surprise = match options.neg_inf {
        NegInf::Zero => log_probs.masked_fill(&scaled.eq(f64::NEG_INFINITY), 0.0),
        NegInf::Avoid | NegInf::Nan => log_probs.shallow_clone(),
    };
    -(log_probs.exp() * surprise).sum_dim_intlist(-1, false, None)
}
