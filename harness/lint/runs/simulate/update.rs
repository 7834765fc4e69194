//! The loss of a batch, its gradient, and the step along it.

use super::bug::Bug;
use super::completion::{Completion, Token};
use super::policy::{Gradient, Table, elsewhere, norm};
use super::{Penalty, Simulation};

/// How many times larger the steps of a table are than those of a large model.
pub(super) const TABLE: f64 = 1e7;

/// What one update found, as sums over its tokens and means.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Update {
    /// How many tokens it had.
    pub(super) tokens: f64,
    /// The loss, all of it.
    pub(super) loss: f64,
    /// Its policy-gradient part.
    pub(super) pg_loss: f64,
    /// The norm of the gradient before clipping.
    pub(super) grad_norm: f64,
    /// The mean of old − new log-probabilities.
    pub(super) kl_old: f64,
    /// The KL to the reference.
    pub(super) kl: f64,
    /// The entropy.
    pub(super) entropy: f64,
    /// The share of the tokens whose ratio was clipped.
    pub(super) clipped: f64,
    /// Below, above.
    pub(super) clipped_at: [f64; 2],
    /// The mean, the smallest, the largest ratio.
    pub(super) ratio: [f64; 3],
}

/// Takes one step along the gradient of these completions.
pub(super) fn step(
    plan: &Simulation,
    completions: &[Completion],
    policy: &mut Table,
    gradient: &mut Gradient,
    rate: f64,
    weight: f64,
) -> Update {
    let tokens = || completions.iter().flat_map(|one| &one.tokens);
    let count = tokens().count().max(1) as f64;
    let mut update = Update { tokens: count, ratio: [0.0, f64::MAX, 0.0], ..Update::default() };
    for token in tokens() {
        let wanted = one(plan, token, policy, &mut update);
        gradient.want(
            token.row,
            token.token,
            weight * wanted / count,
            weight * plan_entropy(plan) / count,
        );
    }
    update.average(count);
    let kl = if let Penalty::Loss(beta) = plan.penalty { beta * update.kl } else { 0.0 };
    update.loss = weight * (update.pg_loss + kl - plan.entropy * update.entropy);
    let direction = gradient.drain(policy);
    if plan.bug == Some(Bug::Frozen) {
        return update;
    }
    update.grad_norm = norm(&direction);
    let mut scale = rate * TABLE * (plan.max_norm / (update.grad_norm + 1e-6)).min(1.0);
    if plan.bug == Some(Bug::LossNegated) {
        scale = -scale;
    }
    if rate == 0.0 {
        return update;
    }
    for (row, of_row) in &direction {
        policy.add(*row, of_row, scale);
        if plan.sharing != 0.0 {
            elsewhere(*row).for_each(|other| policy.add(other, of_row, plan.sharing * scale));
        }
    }
    update
}

fn plan_entropy(plan: &Simulation) -> f64 {
    let is_lost = matches!(plan.bug, Some(Bug::EntropyLost | Bug::EntropyLostAtOnce));
    if is_lost { -plan.entropy } else { plan.entropy }
}

/// By how much the log-probability of a token is wanted larger.
fn one(plan: &Simulation, token: &Token, policy: &mut Table, update: &mut Update) -> f64 {
    let (_, log, entropy) = policy.row(token.row);
    let new = log[token.token];
    let moved = new - token.old;
    let ratio = if moved == 0.0 { 1.0 } else { moved.clamp(-20.0, 20.0).exp() };
    let [low, high] = plan.clip;
    let is_low = ratio < 1.0 - low && token.advantage < 0.0;
    let is_high = ratio > 1.0 + high && token.advantage > 0.0;
    let bounded = if is_low || is_high { ratio.clamp(1.0 - low, 1.0 + high) } else { ratio };
    update.pg_loss -= token.weight * bounded * token.advantage;
    update.kl_old -= moved;
    update.entropy += entropy;
    update.clipped_at[0] += f64::from(u8::from(is_low));
    update.clipped_at[1] += f64::from(u8::from(is_high));
    let [mean, least, most] = update.ratio;
    update.ratio = [mean + ratio, least.min(ratio), most.max(ratio)];
    let mut wanted = 0.0;
    if !is_low && !is_high {
        wanted += token.weight * ratio * token.advantage;
    }
    let (kl, pull) = divergence(plan, new, token.reference);
    update.kl += kl;
    if let Penalty::Loss(beta) = plan.penalty {
        wanted -= beta * pull;
    }
    wanted
}

/// The KL of one token to the reference, and its derivative by the log-probability: k3 in the loss,
/// k1 in the reward.
fn divergence(plan: &Simulation, new: f64, reference: f64) -> (f64, f64) {
    let apart = reference - new;
    let sign = if plan.bug == Some(Bug::KlSign) { -1.0 } else { 1.0 };
    let (kl, pull) = match plan.penalty {
        _ if apart == 0.0 => (0.0, 0.0),
        Penalty::Loss(_)
            if matches!(
                plan.bug,
                Some(Bug::KlUnclamped | Bug::RateTooHigh | Bug::UpdatesUnclipped)
            ) =>
        {
            let grown = apart.min(60.0).exp();
            (grown - 1.0 - apart, 1.0 - grown)
        }
        Penalty::Loss(_) => {
            let (apart, is_far) = (apart.clamp(-20.0, 20.0), apart.abs() > 20.0);
            let kl = apart.exp() - 1.0 - apart;
            if kl > 10.0 || is_far { (kl.min(10.0), 0.0) } else { (kl, 1.0 - apart.exp()) }
        }
        _ => (-apart, 1.0),
    };
    (sign * kl, sign * pull)
}

impl Update {
    fn average(&mut self, count: f64) {
        for sum in [&mut self.pg_loss, &mut self.kl_old, &mut self.kl, &mut self.entropy] {
            *sum /= count;
        }
        self.clipped_at = self.clipped_at.map(|clipped| clipped / count);
        self.clipped = self.clipped_at[0] + self.clipped_at[1];
        self.ratio[0] /= count;
    }

    /// The mean of several.
    pub(super) fn mean(updates: &[Update]) -> Update {
        let n = updates.len() as f64;
        let of = |get: fn(&Update) -> f64| updates.iter().map(get).sum::<f64>() / n;
        Update {
            tokens: of(|one| one.tokens),
            loss: of(|one| one.loss),
            pg_loss: of(|one| one.pg_loss),
            grad_norm: of(|one| one.grad_norm),
            kl_old: of(|one| one.kl_old),
            kl: of(|one| one.kl),
            entropy: of(|one| one.entropy),
            clipped: of(|one| one.clipped),
            clipped_at: [of(|one| one.clipped_at[0]), of(|one| one.clipped_at[1])],
            ratio: [
                of(|one| one.ratio[0]),
                updates.iter().map(|one| one.ratio[1]).fold(f64::MAX, f64::min),
                updates.iter().map(|one| one.ratio[2]).fold(0.0, f64::max),
            ],
        }
    }
}
