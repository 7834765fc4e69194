//! Completions that a policy sampled: what REINFORCE, PPO and GRPO learn from.

use tch::Tensor;

use crate::masked::under;

/// A batch of completions and what is known about each token.
#[derive(Debug)]
pub struct Completions {
    /// `[N, T]`: the tokens that were sampled.
    pub tokens: Tensor,
    /// `[N, T]`: true where the policy chose the token.
    pub mask: Tensor,
    /// `[N, T]`: the reward of each token; an outcome stands at the last.
    pub rewards: Tensor,
    /// `[N]`: the prompt of each completion, by number.
    pub groups: Tensor,
    /// `[N, T]`: under the policy that sampled.
    pub old_log_probs: Tensor,
    /// `[N, T]`: as the engine that sampled gave them, which is not quite that policy.
    pub sampler_log_probs: Tensor,
    /// `[N, T]`: under the policy to stay close to.
    pub ref_log_probs: Tensor,
}

impl Completions {
    /// `[N]`: what each completion got in all.
    pub fn outcomes(&self) -> Tensor {
        under(&self.mask, &self.rewards).sum_dim_intlist(1, false, None)
    }
}
