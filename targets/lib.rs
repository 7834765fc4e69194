//! Implementations under test: reference objectives on tensors, historical bugs, real libraries.
//!
//! | contract | reference on tensors | historical bugs | real libraries |
//! |---|---|---|---|
//! | `group-sampling` | [`group_sampling`] | [`zoo`]: open-instruct #560, verl #1181 | |
//! | `turn-mask` | [`turn_mask`] | [`zoo`]: transformers #47325 | |
//! | `batch-collation` | [`batch_collation`] | [`zoo`]: trl #3398 | |
//! | `sequence-packing` | [`sequence_packing`] | [`zoo`]: torchtune #2613 | |
//! | `batch-partition` | [`batch_partition`] | [`zoo`]: verl #6786 | |
//! | `reward-function` | | [`tutorial`]: three, in Rust and in Python | TRL, verl, Math-Verify |
//! | `length-penalty` | [`length_penalty`] | [`zoo`]: OpenRLHF #1243 | |
//! | `reward-combination` | [`reward_combination`] | [`zoo`]: trl #5353, trl #5773 | |
//! | `group-filter` | [`group_filter`] | [`zoo`]: NeMo-RL #3794, OpenRLHF #1270 | |
//! | `group-advantage` | [`advantage`] | [`zoo`]: prime-rl #390, AReaL #225 | TRL, `python/` |
//! | `outcome-advantage` | [`outcome`] | [`zoo`]: verl #6362, NeMo-RL #4061 | |
//! | `token-rewards` | [`token_rewards`] | [`zoo`]: slime #2114 | |
//! | `gae` | [`gae`] | [`zoo`]: trl #137, CleanRL #337, verl #1440 | |
//! | `rollout-gae` | [`rollout_gae`] | [`zoo`]: SB3 #105, #183, CleanRL #494 | |
//! | `returns` | [`returns`] | [`zoo`]: verl #7278, trl #7024, slime #1372 | |
//! | `whiten` | [`whiten`] | [`zoo`]: trlx, verl #1527 | |
//! | `model-forward` | [`model_forward`] | | transformers, `python/` |
//! | `token-log-probs` | [`log_probs`] | [`zoo`]: OpenRLHF #634 | TRL, `python/` |
//! | `token-entropy` | [`entropy`] | [`zoo`]: verl #1943 | |
//! | `kl-estimate` | [`kl`] | [`zoo`]: trlx, trl #2277, NeMo-RL #2506, OpenRLHF #620 | |
//! | `importance-weights` | [`importance_weights`] | [`zoo`]: slime #1174, slime #1917 | |
//! | `policy-loss` | [`policy`] | [`zoo`]: eight, from verl #179 to OpenRLHF | |
//! | `entropy-bonus` | [`entropy_bonus`] | [`zoo`]: verl ced0c903d, trl #2022 | |
//! | `value-loss` | [`value`] | [`zoo`]: verl #2016 | |
//! | `preference-loss` | [`preference`] | [`zoo`]: LLaMA-Factory, two | |
//! | `pair-objective` | [`pair_objective`] | [`zoo`]: LLaMA-Factory 52d402e2a, mlx-lm-lora #65 | |
//! | `accumulated-loss` | [`accumulate`] | [`zoo`]: four, from transformers #34191 | |
//! | `policy-update` | [`bandit`], [`pairs`] | [`zoo`]: trl #6443 | |
//! | `sft-step` | [`sft_step`] | | TRL, `python/` |
//! | `preference-step` | [`preference_step`] | | TRL, `python/` |
//! | `kto-step` | [`kto_step`] | | TRL, `python/` |
//! | `reward-model-step` | [`reward_model_step`] | | TRL, `python/` |
//! | `critic-step` | [`critic_step`] | | |
//! | `grpo-step` | [`grpo_step`] | | TRL, `python/` |
//! | `metric-reduction` | [`metric_reduction`] | [`zoo`]: trl #6380, AReaL #990 | |
//!
//! Four algorithms are made of these: [`reinforce`], [`ppo`], [`grpo`] and [`dpo`]. Each learns in
//! an example: `cargo run -p shakedown-targets --example grpo`.

pub mod accumulate;
pub mod advantage;
pub mod bandit;
pub mod batch_collation;
pub mod batch_partition;
pub mod chance;
pub mod completions;
pub mod critic_step;
pub mod dpo;
pub mod entropy;
pub mod entropy_bonus;
pub mod gae;
pub mod group_filter;
pub mod group_sampling;
pub mod grpo;
pub mod grpo_step;
pub mod importance_weights;
pub mod kl;
pub mod kto_step;
pub mod length_penalty;
pub mod log_probs;
pub mod masked;
pub mod metric_reduction;
pub mod model_forward;
pub mod outcome;
pub mod packed;
pub mod pair_objective;
pub mod pairs;
pub mod policy;
pub mod ppo;
pub mod preference;
pub mod preference_step;
pub mod references;
pub mod reinforce;
pub mod returns;
pub mod reward_combination;
pub mod reward_model_step;
pub mod rollout_gae;
pub mod sequence_packing;
pub mod sft_step;
pub mod token_rewards;
pub mod turn_mask;
pub mod tutorial;
pub mod value;
pub mod whiten;
pub mod zoo;

use tch::Kind;

/// The format to compute in: f32 for the half formats, which are for storage.
fn arithmetic(kind: Kind) -> Kind {
    match kind {
        Kind::Half | Kind::BFloat16 => Kind::Float,
        own => own,
    }
}
