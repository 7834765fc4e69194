//! `token-log-probs` on tensors: a log-softmax of which one entry a position is kept.

use shakedown::author::Component;
use shakedown::contracts::token_log_probs::{Options, Shift, TokenLogProbs};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<TokenLogProbs> {
    tch::<TokenLogProbs>(move |case| token_log_probs(&case.logits, &case.tokens, &options))
}

/// The log-probability of each token under the logits; differentiable.
///
/// Half formats are widened to f32 before anything is computed, and answered in f32: in bf16 a
/// log-probability of -90 has steps of half a nat.
///
/// # Shapes
/// `N` rows of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, tokens `[N, T]`, the result
/// `[N, T]`, or `[N, T - 1]` with `shift: next`.
///
/// # Units
/// Nats.
///
/// # Errors
/// Panics where the shapes do not fit, or a token is not in the vocabulary.
///
/// # Source
/// TRL `selective_log_softmax`, verl `logprobs_from_logits`: one formula. The temperature divides
/// the logits, as in sampling.
pub fn token_log_probs(logits: &Tensor, tokens: &Tensor, options: &Options) -> Tensor {
    let (logits, tokens) = match options.shift {
        Shift::None => (logits.shallow_clone(), tokens.shallow_clone()),
        Shift::Next => {
            let scored = tokens.size()[1] - 1;
            (logits.narrow(1, 0, scored), tokens.narrow(1, 1, scored))
        }
    };
    let scaled = logits.to_kind(arithmetic(logits.kind())) / options.temperature;
    let log_probs = scaled.log_softmax(-1, None);
    log_probs.gather(-1, &tokens.unsqueeze(-1), false).squeeze_dim(-1)
}
