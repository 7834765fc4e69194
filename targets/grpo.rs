//! GRPO: outcomes normalised in their group, a clipped policy loss, and the KL to the reference.

use shakedown::author::aggregate::Aggregate;
use shakedown::contracts::{outcome_advantage, policy_loss, token_log_probs};
use tch::Tensor;

use crate::completions::Completions;
use crate::log_probs::token_log_probs;
use crate::outcome::outcome_advantage;
use crate::policy::{Inputs, PolicyLoss, policy_loss};

/// The conventions of GRPO.
#[derive(Clone, Debug)]
pub struct Grpo {
    /// How outcomes are normalised.
    pub advantage: outcome_advantage::Options,
    /// The clip range, how tokens are added up, and the weight of the KL.
    pub policy: policy_loss::Options,
}

impl Default for Grpo {
    fn default() -> Self {
        Grpo {
            advantage: outcome_advantage::Options::default(),
            policy: policy_loss::Options {
                beta: 0.04,
                aggregate: Aggregate::SeqMeanTokenMean,
                ..policy_loss::Options::default()
            },
        }
    }
}

impl Grpo {
    /// The objective, to be minimised; differentiable by the logits.
    ///
    /// # Shapes
    /// `N` completions of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, scoring the
    /// token at their own position; scalars.
    ///
    /// # Units
    /// As [`policy_loss()`], with advantages in deviations of the outcomes of a group.
    ///
    /// # Errors
    /// As [`outcome_advantage()`] and [`policy_loss()`].
    ///
    /// # Source
    /// Shao et al. 2024, DeepSeekMath, with its mean over completions of the mean over tokens.
    pub fn loss(&self, logits: &Tensor, completions: &Completions) -> PolicyLoss {
        let options = token_log_probs::Options::default();
        let log_probs = token_log_probs(logits, &completions.tokens, &options);
        let Completions { rewards, mask, groups, .. } = completions;
        let inputs = Inputs {
            log_probs: &log_probs,
            old_log_probs: &completions.old_log_probs,
            ref_log_probs: Some(&completions.ref_log_probs),
            advantages: &outcome_advantage(rewards, mask, groups, &self.advantage),
            mask,
        };
        policy_loss(&inputs, &self.policy)
    }
}
