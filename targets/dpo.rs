//! DPO: a policy that learns from pairs which completion is preferred, without a reward model.

use shakedown::contracts::preference_loss::{Options, Reduction};
use shakedown::contracts::token_log_probs;
use tch::Tensor;

use crate::log_probs::token_log_probs;
use crate::masked::under;
use crate::preference::{Pairs, PreferenceLoss, preference_loss};

/// One side of `P` pairs: completions of `T` tokens.
#[derive(Debug)]
pub struct Side {
    /// `[P, T]`.
    pub tokens: Tensor,
    /// `[P, T]`: true where the token belongs to the completion.
    pub mask: Tensor,
    /// `[P]`: the log-probability of the completion under the reference.
    pub ref_log_probs: Tensor,
}

/// The conventions of DPO.
#[derive(Clone, Debug)]
pub struct Dpo {
    /// The loss of a pair.
    pub preference: Options,
}

impl Default for Dpo {
    fn default() -> Self {
        let preference = Options { reduction: Reduction::Mean, ..Options::default() };
        Dpo { preference }
    }
}

impl Dpo {
    /// The objective, to be minimised; differentiable by the logits of both sides.
    ///
    /// # Shapes
    /// `P` pairs of completions of `T` tokens over a vocabulary of `V`: logits `[P, T, V]`, scoring
    /// the token at their own position; `T` may differ between the sides. As [`preference_loss()`].
    ///
    /// # Units
    /// As [`preference_loss()`].
    ///
    /// # Errors
    /// Panics where the shapes do not fit.
    ///
    /// # Source
    /// Rafailov et al. 2023.
    pub fn loss(
        &self,
        (chosen_logits, chosen): (Tensor, &Side),
        (rejected_logits, rejected): (Tensor, &Side),
    ) -> PreferenceLoss {
        let pairs = Pairs {
            policy_chosen: &completion_log_probs(&chosen_logits, &chosen.tokens, &chosen.mask),
            policy_rejected: &completion_log_probs(
                &rejected_logits,
                &rejected.tokens,
                &rejected.mask,
            ),
            ref_chosen: &chosen.ref_log_probs,
            ref_rejected: &rejected.ref_log_probs,
        };
        preference_loss(&pairs, &self.preference)
    }
}

/// `[P]`: the log-probability of each completion, the sum over its tokens.
pub fn completion_log_probs(logits: &Tensor, tokens: &Tensor, mask: &Tensor) -> Tensor {
    let log_probs = token_log_probs(logits, tokens, &token_log_probs::Options::default());
    under(mask, &log_probs).sum_dim_intlist(1, false, None)
}
