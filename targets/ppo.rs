//! PPO: a clipped policy loss on advantages of a value function, which is trained beside it. The KL
//! to the reference is taken off the rewards.

use shakedown::contracts::token_rewards::TokenRewardsCase;
use shakedown::contracts::{
    entropy_bonus, gae, policy_loss, token_log_probs, token_rewards, value_loss,
};
use tch::Tensor;

use crate::arithmetic;
use crate::completions::Completions;
use crate::entropy_bonus::entropy_bonus;
use crate::gae::gae;
use crate::log_probs::token_log_probs;
use crate::policy::{Inputs, PolicyLoss, policy_loss};
use crate::token_rewards::token_rewards;
use crate::value::{ValueLoss, value_loss};

/// The conventions of PPO.
#[derive(Clone, Debug)]
pub struct Ppo {
    /// The weight of the KL, which is taken off the rewards.
    pub rewards: token_rewards::Options,
    /// How advantages and returns are made of rewards and old values.
    pub gae: gae::Options,
    /// The clip range, and how tokens are added up.
    pub policy: policy_loss::Options,
    /// The clip range of the values.
    pub value: value_loss::Options,
    /// The weight of the value loss.
    pub value_coefficient: f64,
    /// The weight of the entropy, which is added to what is to rise.
    pub entropy_coefficient: f64,
}

impl Default for Ppo {
    fn default() -> Self {
        Ppo {
            rewards: token_rewards::Options { beta: 0.0, ..token_rewards::Options::default() },
            gae: gae::Options { whiten: true, ..gae::Options::default() },
            policy: policy_loss::Options::default(),
            value: value_loss::Options { clip: Some(0.2), ..value_loss::Options::default() },
            value_coefficient: 0.5,
            entropy_coefficient: 0.01,
        }
    }
}

/// What [`Ppo::loss`] gives.
#[derive(Debug)]
pub struct PpoLoss {
    /// To be minimised: the parts below under their coefficients.
    pub loss: Tensor,
    /// The part of the policy.
    pub policy: PolicyLoss,
    /// The part of the value function.
    pub value: ValueLoss,
    /// The mean entropy over tokens, in nats, added up as the loss of the policy is.
    pub entropy: Tensor,
}

impl Ppo {
    /// The objective, to be minimised; differentiable by the logits and the values.
    ///
    /// # Shapes
    /// `N` completions of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, scoring the
    /// token at their own position, values and old values `[N, T]`; scalars.
    ///
    /// # Units
    /// As [`policy_loss()`] and [`value_loss()`], with advantages in deviations.
    ///
    /// # Errors
    /// As [`token_rewards()`], [`gae()`], [`policy_loss()`] and [`value_loss()`].
    ///
    /// # Source
    /// Schulman et al. 2017; the defaults are those of Huang et al. 2022, The 37 Implementation
    /// Details of PPO.
    pub fn loss(
        &self,
        logits: &Tensor,
        values: &Tensor,
        old_values: &Tensor,
        completions: &Completions,
    ) -> PpoLoss {
        let mask = &completions.mask;
        // Once: a gradient of a half format that is added up from two loses digits.
        let logits = &logits.to_kind(arithmetic(logits.kind()));
        let options = token_log_probs::Options::default();
        let log_probs = token_log_probs(logits, &completions.tokens, &options);
        let rewards = token_rewards(
            &TokenRewardsCase {
                scores: completions.outcomes(),
                log_probs: completions.old_log_probs.shallow_clone(),
                ref_log_probs: completions.ref_log_probs.shallow_clone(),
                mask: mask.shallow_clone(),
                finished: None,
            },
            &self.rewards,
        );
        let gae = gae(&rewards.rewards, &old_values.detach(), mask, &self.gae);
        let inputs = Inputs {
            log_probs: &log_probs,
            old_log_probs: &completions.old_log_probs,
            ref_log_probs: Some(&completions.ref_log_probs),
            advantages: &gae.advantages,
            mask,
        };
        let policy = policy_loss(&inputs, &self.policy);
        let value = value_loss(values, old_values, &gae.returns, mask, &self.value);
        let added_up_alike = entropy_bonus::Options {
            aggregate: self.policy.aggregate,
            norm_length: self.policy.norm_length,
            empty_rows: self.policy.empty_rows,
            empty_mask: self.policy.empty_mask,
            ..entropy_bonus::Options::default()
        };
        let entropy = entropy_bonus(logits, mask, &added_up_alike).entropy;
        let loss = &policy.loss + &value.loss * self.value_coefficient
            - &entropy * self.entropy_coefficient;
        PpoLoss { loss, policy, value, entropy: entropy.detach() }
    }
}
