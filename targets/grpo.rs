//! GRPO: outcomes normalised in their group, a clipped policy loss, and the KL to the reference.
//! Groups that have nothing to say are left out, and tokens weigh what the policy, not the engine
//! that sampled them, thought of them.

use shakedown::author::aggregate::Aggregate;
use shakedown::contracts::group_filter::GroupFilterCase;
use shakedown::contracts::{
    group_filter, importance_weights, outcome_advantage, policy_loss, token_log_probs,
};
use tch::{Kind, Tensor};

use crate::completions::Completions;
use crate::group_filter::group_filter;
use crate::importance_weights::importance_weights;
use crate::log_probs::token_log_probs;
use crate::outcome::outcome_advantage;
use crate::policy::{Inputs, PolicyLoss, policy_loss};

/// The conventions of GRPO.
#[derive(Clone, Debug)]
pub struct Grpo {
    /// Which groups stay (dynamic sampling).
    pub filter: group_filter::Options,
    /// What corrects for the engine that sampled.
    pub weights: importance_weights::Options,
    /// How outcomes are normalised.
    pub advantage: outcome_advantage::Options,
    /// The clip range, how tokens are added up, and the weight of the KL.
    pub policy: policy_loss::Options,
}

impl Default for Grpo {
    fn default() -> Self {
        Grpo {
            filter: group_filter::Options::default(),
            weights: importance_weights::Options::default(),
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
    /// As [`importance_weights()`], [`outcome_advantage()`] and [`policy_loss()`].
    ///
    /// # Source
    /// Shao et al. 2024, DeepSeekMath, with its mean over completions of the mean over tokens.
    pub fn loss(&self, logits: &Tensor, completions: &Completions) -> PolicyLoss {
        let options = token_log_probs::Options::default();
        let log_probs = token_log_probs(logits, &completions.tokens, &options);
        let Completions { rewards, groups, old_log_probs, .. } = completions;
        let mask = &completions.mask.logical_and(&self.kept(completions).unsqueeze(1));
        let sampler = &completions.sampler_log_probs;
        let weights = importance_weights(old_log_probs, sampler, mask, None, &self.weights).weights;
        let inputs = Inputs {
            log_probs: &log_probs,
            old_log_probs,
            ref_log_probs: Some(&completions.ref_log_probs),
            advantages: &(outcome_advantage(rewards, mask, groups, &self.advantage) * weights),
            mask,
        };
        policy_loss(&inputs, &self.policy)
    }
    /// `[N]`: the completions of groups that have something to say.
    fn kept(&self, completions: &Completions) -> Tensor {
        let outcomes = completions.outcomes();
        let rows = Tensor::arange(outcomes.size()[0], (Kind::Int64, outcomes.device()));
        let case = GroupFilterCase {
            metric: outcomes.shallow_clone(),
            rewards: outcomes,
            groups: completions.groups.shallow_clone(),
            ids: rows,
        };
        group_filter(&case, &self.filter).keep
    }
}
