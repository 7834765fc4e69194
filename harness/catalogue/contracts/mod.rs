//! The contracts. Adding one touches its own folder and one line of the list below.

use crate::contract::Contract;
use crate::contract::erased::{self, AnyContract};
use crate::value::error;

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

/// Every contract, in pipeline order.
#[doc(hidden)]
pub fn all() -> impl Iterator<Item = &'static dyn AnyContract> {
    IDS.iter().map(|id| find(id).expect("the list names known contracts"))
}

/// The message for a contract that does not exist.
#[doc(hidden)]
pub fn unknown(name: &str) -> String {
    error::unknown("contract", name, IDS)
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
    metric_reduction::MetricReduction,
}
