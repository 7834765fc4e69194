//! Rewards become advantages, as each algorithm has it.

use super::bug::Bug;
use super::completion::Completion;
use super::critic::Critic;
use super::random::Random;
use super::rollout::Batch;
use super::{Algorithm, Penalty, Simulation};
use crate::runs::statistics::{deviation, mean};

/// Sums the parts of the rewards.
pub(super) fn reward(plan: &Simulation, batch: &mut Batch, random: &mut Random) {
    let is_dropped = plan.bug == Some(Bug::PartDropped) && random.chance(0.5);
    let [scale, offset] = plan.reward;
    for one in &mut batch.completions {
        if plan.bug == Some(Bug::ProxyHacked) {
            one.scores.correct *= 0.3;
        }
        if plan.bug == Some(Bug::PartConstant) {
            one.scores.format = 0.0;
        }
        let format = if is_dropped { 0.0 } else { plan.format * one.scores.format };
        one.reward = offset + scale * (one.scores.correct + format + one.scores.length);
        if plan.bug == Some(Bug::ScorerConstant) {
            (one.scores.correct, one.scores.format, one.reward) = (0.0, 0.0, 0.0);
        }
    }
    if plan.bug == Some(Bug::RewardsShuffled) {
        let mut rewards: Vec<f64> = batch.completions.iter().map(|one| one.reward).collect();
        random.shuffle(&mut rewards);
        batch.completions.iter_mut().zip(rewards).for_each(|(one, reward)| one.reward = reward);
    }
}

/// What the advantage is computed from: the reward, less the KL where that is in the reward.
fn shaped(plan: &Simulation, one: &Completion) -> f64 {
    match plan.penalty {
        Penalty::Reward(weight) => one.reward - weight * kl_of(plan, one),
        _ => one.reward,
    }
}

/// k1, summed over a completion.
fn kl_of(plan: &Simulation, one: &Completion) -> f64 {
    let kl = one.tokens.iter().map(|token| token.old - token.reference).sum::<f64>();
    if plan.bug == Some(Bug::KlSign) { -kl } else { kl }
}

/// The mean reward with the KL.
pub(super) fn shaped_mean(plan: &Simulation, batch: &Batch) -> f64 {
    mean(&batch.completions.iter().map(|one| shaped(plan, one)).collect::<Vec<f64>>())
}

/// Sets the advantage of every token.
pub(super) fn set(plan: &Simulation, batch: &mut Batch, critic: &mut Critic, random: &mut Random) {
    match plan.algorithm {
        Algorithm::Ppo => with_critic(plan, batch, critic),
        Algorithm::Reinforce => {
            let mut values: Vec<f64> =
                batch.completions.iter().map(|one| shaped(plan, one)).collect();
            normalise(&mut values);
            give(&mut batch.completions, &values);
        }
        _ => {
            for group in batch.completions.chunks_mut(plan.group) {
                let values: Vec<f64> = group.iter().map(|one| shaped(plan, one)).collect();
                give(group, &in_group(plan, values, random));
            }
        }
    }
    if plan.bug == Some(Bug::AdvantageNegated) {
        batch.tokens_mut().for_each(|token| token.advantage = -token.advantage);
    }
}

fn give(completions: &mut [Completion], values: &[f64]) {
    for (one, value) in completions.iter_mut().zip(values) {
        one.tokens.iter_mut().for_each(|token| token.advantage = *value);
    }
}

fn in_group(plan: &Simulation, mut rewards: Vec<f64>, random: &mut Random) -> Vec<f64> {
    let mut epsilon = 1e-4;
    if plan.bug == Some(Bug::NoiseNormalised) {
        // Sums in another order differ in their last digits.
        rewards.iter_mut().for_each(|reward| *reward += 1e-8 * random.normal());
        epsilon = 0.0;
    }
    let centre = if plan.bug == Some(Bug::NoBaseline) { 0.0 } else { mean(&rewards) };
    let spread = deviation(&rewards) + epsilon;
    let others = rewards.len() as f64 / (rewards.len() as f64 - 1.0);
    let scale = match plan.algorithm {
        Algorithm::Rloo => others,
        _ if plan.bug == Some(Bug::NoBaseline) => 1.0,
        _ => 1.0 / spread,
    };
    rewards.iter().map(|reward| (reward - centre) * scale).collect()
}

fn normalise(values: &mut [f64]) {
    let (centre, spread) = (mean(values), deviation(values) + 1e-8);
    values.iter_mut().for_each(|value| *value = (*value - centre) / spread);
}

/// How much of a later surprise a token gets.
const LAMBDA: f64 = 0.95;

/// Generalised advantage estimation without discount, normalised over the batch.
fn with_critic(plan: &Simulation, batch: &mut Batch, critic: &mut Critic) {
    let weight = match plan.penalty {
        Penalty::Reward(weight) => weight,
        _ => 0.0,
    };
    let mut all = Vec::new();
    for one in &mut batch.completions {
        let (mut next, mut later, mut reward) = (0.0, 0.0, one.reward);
        for token in one.tokens.iter_mut().rev() {
            token.value = critic.value(token.row);
            let kl = weight * (token.old - token.reference);
            later = reward - kl + next - token.value + LAMBDA * later;
            (next, reward) = (token.value, 0.0);
            token.advantage = later;
            token.target = later + token.value;
        }
        all.extend(one.tokens.iter().map(|token| token.advantage));
    }
    normalise(&mut all);
    batch.tokens_mut().zip(all).for_each(|(token, advantage)| token.advantage = advantage);
}
