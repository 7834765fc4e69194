//! REINFORCE: the log-probability of each token, weighted by the rewards that followed it.

use shakedown::contracts::policy_loss;
use shakedown::contracts::policy_loss::Objective;
use shakedown::contracts::{returns, token_log_probs, whiten};
use tch::Tensor;

use crate::completions::Completions;
use crate::log_probs::token_log_probs;
use crate::policy::{Inputs, PolicyLoss, policy_loss};
use crate::returns::returns;
use crate::whiten::whiten;

/// The conventions of REINFORCE.
#[derive(Clone, Debug)]
pub struct Reinforce {
    /// How far rewards reach back.
    pub returns: returns::Options,
    /// The baseline and the scale: mean and deviation of the returns of the batch.
    pub whiten: whiten::Options,
    /// How tokens are added up, and the weight of the KL.
    pub policy: policy_loss::Options,
}

impl Default for Reinforce {
    fn default() -> Self {
        Reinforce {
            returns: returns::Options::default(),
            whiten: whiten::Options::default(),
            policy: policy_loss::Options {
                objective: Objective::Reinforce,
                ..policy_loss::Options::default()
            },
        }
    }
}

impl Reinforce {
    /// The objective, to be minimised; differentiable by the logits.
    ///
    /// # Shapes
    /// `N` completions of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, scoring the
    /// token at their own position; scalars.
    ///
    /// # Units
    /// As [`policy_loss()`], with advantages in deviations of the returns.
    ///
    /// # Errors
    /// As [`returns()`], [`whiten()`] and [`policy_loss()`].
    ///
    /// # Source
    /// Williams 1992, with the whitened returns of the batch as the advantage.
    pub fn loss(&self, logits: &Tensor, completions: &Completions) -> PolicyLoss {
        let options = token_log_probs::Options::default();
        let log_probs = token_log_probs(logits, &completions.tokens, &options);
        let returns = returns(&completions.rewards, &completions.mask, &self.returns);
        let advantages = whiten(&returns, &completions.mask, &self.whiten);
        let inputs = Inputs {
            log_probs: &log_probs,
            old_log_probs: &completions.old_log_probs,
            ref_log_probs: Some(&completions.ref_log_probs),
            advantages: &advantages,
            mask: &completions.mask,
        };
        policy_loss(&inputs, &self.policy)
    }
}
