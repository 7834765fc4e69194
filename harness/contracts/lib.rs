//! The contracts. Adding one touches its own folder and one line of the list below.
//!
//! Everything here is public through the crate `shakedown`: depend on that one.

#![deny(unsafe_code)]

use shakedown_core::contract::Contract;
use shakedown_core::contract::erased::{self, AnyContract};
use shakedown_core::contract::registry::Registry;

/// Declares the modules of the contracts, the list of names, and the way from a name to a contract.
macro_rules! contracts {
    ($( $module:ident :: $contract:ident ),+ $(,)?) => {
        $( pub mod $module; )+

        /// The names of the contracts, in pipeline order.
        pub const IDS: &[&str] = &[$( <$module::$contract as Contract>::ID ),+];

        /// The contract of this name.
        #[doc(hidden)]
        pub fn find(id: &str) -> Option<&'static dyn AnyContract> {
            $( if id == <$module::$contract as Contract>::ID {
                return Some(erased::of::<$module::$contract>());
            } )+
            None
        }
    };
}

/// Every contract by name.
#[doc(hidden)]
pub const REGISTRY: Registry = Registry::new(IDS, find);

/// Every contract, in pipeline order.
#[doc(hidden)]
pub fn all() -> impl Iterator<Item = &'static dyn AnyContract> {
    REGISTRY.all()
}

#[cfg(test)]
mod laws_tests;
mod step;

/// The regressions in `corpora/`, a constant for each contract.
mod regressions {
    include!(concat!(env!("OUT_DIR"), "/regressions.rs"));
}

contracts! {
    group_sampling::GroupSampling,
    turn_mask::TurnMask,
    batch_collation::BatchCollation,
    sequence_packing::SequencePacking,
    batch_partition::BatchPartition,
    reward_function::RewardFunction,
    length_penalty::LengthPenalty,
    reward_combination::RewardCombination,
    completion_decoder::CompletionDecoder,
    answer_extractor::AnswerExtractor,
    token_decoder::TokenDecoder,
    completion_mask::CompletionMask,
    sampling_filter::SamplingFilter,
    group_filter::GroupFilter,
    group_advantage::GroupAdvantage,
    outcome_advantage::OutcomeAdvantage,
    token_rewards::TokenRewards,
    gae::Gae,
    rollout_gae::RolloutGae,
    returns::Returns,
    whiten::Whiten,
    model_forward::ModelForward,
    token_log_probs::TokenLogProbs,
    token_entropy::TokenEntropy,
    kl_estimate::KlEstimate,
    importance_weights::ImportanceWeights,
    policy_loss::PolicyLoss,
    entropy_bonus::EntropyBonus,
    value_loss::ValueLoss,
    preference_loss::PreferenceLoss,
    pair_objective::PairObjective,
    accumulated_loss::AccumulatedLoss,
    policy_update::PolicyUpdate,
    sft_step::SftStep,
    preference_step::PreferenceStep,
    kto_step::KtoStep,
    reward_model_step::RewardModelStep,
    critic_step::CriticStep,
    grpo_step::GrpoStep,
    metric_reduction::MetricReduction,
}
