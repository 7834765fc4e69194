//! REINFORCE: the log-probability of each token, weighted by the rewards that followed it; over
//! several ranks, which are simulated one after the other.

use shakedown::author::aggregate::Aggregate;
use shakedown::author::conventions::EmptyRows;
use shakedown::contracts::metric_reduction::Shard;
use shakedown::contracts::policy_loss::Objective;
use shakedown::contracts::{
    batch_partition, metric_reduction, policy_loss, returns, token_log_probs, whiten,
};
use tch::{Kind, Tensor};

use crate::batch_partition::batch_partition;
use crate::completions::Completions;
use crate::log_probs::token_log_probs;
use crate::metric_reduction::metrics;
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
    /// How completions are dealt to ranks.
    pub ranks: batch_partition::Options,
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
            ranks: batch_partition::Options::default(),
        }
    }
}

impl Reinforce {
    /// The objective, to be minimised; differentiable by the logits. Each rank has a share of the
    /// completions and of the loss: what it counts of what all of them count. The mean of their
    /// means would be another loss.
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
        let counted = self.counted(&completions.mask).clamp_min(1.0);
        let of_ranks = self.rows(&completions.mask).into_iter().map(|rows| {
            let own = |tensor: &Tensor| tensor.index_select(0, &rows);
            let mask = own(&completions.mask);
            let inputs = Inputs {
                log_probs: &own(&log_probs),
                old_log_probs: &own(&completions.old_log_probs),
                ref_log_probs: Some(&own(&completions.ref_log_probs)),
                advantages: &own(&advantages),
                mask: &mask,
            };
            let PolicyLoss { loss, clip_fraction, approx_kl, kl } =
                policy_loss(&inputs, &self.policy);
            let share = (self.counted(&mask) / &counted).to_kind(loss.kind());
            PolicyLoss {
                loss: loss * &share,
                clip_fraction: clip_fraction.map(|fraction| fraction * &share),
                approx_kl: approx_kl * &share,
                kl: kl.map(|kl| kl * &share),
            }
        });
        let sum = |a: Option<Tensor>, b: Option<Tensor>| a.zip(b).map(|(a, b)| a + b);
        let of_all = of_ranks.reduce(|a, b| PolicyLoss {
            loss: a.loss + b.loss,
            clip_fraction: sum(a.clip_fraction, b.clip_fraction),
            approx_kl: a.approx_kl + b.approx_kl,
            kl: sum(a.kl, b.kl),
        });
        of_all.expect("there is a rank")
    }

    /// The mean outcome, as the ranks report it together.
    pub fn mean_outcome(&self, completions: &Completions) -> Tensor {
        let outcomes = completions.outcomes().unsqueeze(1);
        let shards = self.rows(&completions.mask).into_iter().map(|rows| {
            let values = outcomes.index_select(0, &rows);
            let mask = values.ones_like().to_kind(Kind::Bool);
            Shard { targets: values.zeros_like(), values, mask }
        });
        let shards: Vec<_> = shards.collect();
        metrics(&shards, &metric_reduction::Options::default()).mean.expect("it gives all")
    }

    /// The completions of each rank, by number.
    fn rows(&self, mask: &Tensor) -> Vec<Tensor> {
        if self.ranks.parts == 1 {
            return vec![Tensor::arange(mask.size()[0], (Kind::Int64, mask.device()))];
        }
        let lengths = mask.sum_dim_intlist(1, false, Kind::Int64).clamp_min(1);
        let parts = self.ranks.parts.min(lengths.numel() as i64);
        let options = batch_partition::Options { parts, ..self.ranks.clone() };
        let partition = batch_partition(&lengths, &options);
        partition.iter().map(|rows| Tensor::from_slice(rows).to_device(mask.device())).collect()
    }

    /// What the loss is a mean over.
    fn counted(&self, mask: &Tensor) -> Tensor {
        let rows = || mask.any_dim(1, false);
        let counts = match (self.policy.aggregate, self.policy.empty_rows) {
            (Aggregate::TokenMean, _) => mask.shallow_clone(),
            (_, EmptyRows::Count) => rows().ones_like(),
            (_, EmptyRows::Skip) => rows(),
        };
        counts.sum(Kind::Double)
    }
}
