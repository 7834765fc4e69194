//! The references on tensors, under their default options and under drawn ones.

use std::sync::Arc;

use arbitrary::Unstructured;
use rand_core::Rng;
use shakedown::author::{Component, Contract, Options};
use shakedown::contract::{erased, stream};
use shakedown::engine::subject::Subject;

use crate::{
    accumulate, advantage, batch_collation, batch_partition, critic_step, entropy, entropy_bonus,
    gae, group_filter, group_sampling, grpo_step, importance_weights, kl, kto_step, length_penalty,
    log_probs, metric_reduction, model_forward, outcome, pair_objective, policy, preference,
    preference_step, returns, reward_combination, reward_model_step, rollout_gae, sequence_packing,
    sft_step, token_rewards, turn_mask, value, whiten,
};

/// Makes the subject of a check of one reference, with one set of options: the default ones are set
/// 0, all others are drawn.
pub type Reference = Box<dyn Fn(u64) -> Subject>;

/// Each reference, with its contract.
pub fn all() -> Vec<(&'static str, Reference)> {
    vec![
        of(group_sampling::component),
        of(turn_mask::component),
        of(batch_collation::component),
        of(sequence_packing::component),
        of(batch_partition::component),
        of(length_penalty::component),
        of(reward_combination::component),
        of(group_filter::component),
        of(advantage::component),
        of(outcome::component),
        of(token_rewards::component),
        of(gae::component),
        of(rollout_gae::component),
        of(returns::component),
        of(whiten::component),
        of(model_forward::component),
        of(log_probs::component),
        of(entropy::component),
        of(kl::component),
        of(importance_weights::component),
        of(policy::component),
        of(entropy_bonus::component),
        of(value::component),
        of(preference::component),
        of(pair_objective::component),
        of(accumulate::component),
        of(sft_step::component),
        of(preference_step::component),
        of(kto_step::component),
        of(reward_model_step::component),
        of(critic_step::component),
        of(grpo_step::component),
        of(metric_reduction::component),
    ]
}

/// The reference of this contract.
pub fn find(contract: &str) -> Option<Reference> {
    all().into_iter().find(|(id, _)| *id == contract).map(|(_, reference)| reference)
}

fn of<C: Contract, K: Component<C> + 'static>(
    component: fn(C::Options) -> K,
) -> (&'static str, Reference) {
    let subject = move |set| {
        let options = options::<C>(set);
        let tensors = erased::component::<C>(component(options.clone()));
        let subject = Subject::new(erased::of::<C>(), C::ID, tensors);
        Subject { options: Arc::new(options), ..subject }
    };
    (C::ID, Box::new(subject))
}

fn options<C: Contract>(set: u64) -> C::Options {
    if set == 0 {
        return C::Options::default();
    }
    let mut bytes = [0; 256];
    stream::rng(set, C::ID).fill_bytes(&mut bytes);
    C::Options::draw(&mut Unstructured::new(&bytes)).expect("bytes are there")
}
