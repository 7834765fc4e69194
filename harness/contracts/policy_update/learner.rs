//! The reference implementation of `policy-update`, and the habits in which wrong ones differ:
//! REINFORCE on groups of sampled arms, each against the mean of the others.

use ndarray::Array1;

use super::{Options, PolicyUpdateCase, PolicyUpdateOutput, softmax};
use shakedown_core::generate::pick::Pick;

/// The arms sampled in one step, and their rewards.
pub struct Sampled<'a> {
    pub arms: &'a [usize],
    pub rewards: &'a [f64],
    /// The reward of every arm.
    pub of_arms: &'a [f64],
}

impl Sampled<'_> {
    pub fn mean(&self) -> f64 {
        self.rewards.iter().sum::<f64>() / self.rewards.len() as f64
    }
}

/// The advantages of some sampled arms.
pub type Advantages = fn(&Sampled<'_>) -> Vec<f64>;

/// Right ones beside the default: REINFORCE without a baseline and against the mean, GRPO.
pub const RIGHT: [Advantages; 3] = [
    |sampled| sampled.rewards.to_vec(),
    |sampled| sampled.rewards.iter().map(|r| r - sampled.mean()).collect(),
    |sampled| {
        let mean = sampled.mean();
        let squares: f64 = sampled.rewards.iter().map(|r| (r - mean).powi(2)).sum();
        let deviation = (squares / (sampled.rewards.len() as f64 - 1.0)).sqrt();
        sampled.rewards.iter().map(|r| (r - mean) / (deviation + 1e-4)).collect()
    },
];

/// What happens to the reference.
#[derive(Clone, Copy, PartialEq)]
pub enum Reference {
    /// It stays what it was.
    Kept,
    /// It is the policy itself, under another name.
    Shared,
    /// It stays, but what is returned was computed again from the trained policy.
    Recomputed,
    /// It is another policy: the uniform one.
    Uniform,
}

/// How a learner goes about it. The default is right.
pub struct Learner {
    /// Arms sampled in each step.
    pub group: usize,
    /// The advantages of the sampled arms.
    pub advantages: Advantages,
    /// The arm that is sampled instead of one that was drawn, out of so many.
    pub sampled: fn(usize, &[f64]) -> usize,
    /// How much of the policy's own probability is taken off a sampled arm's gradient.
    pub normaliser: f64,
    /// What is added to the gradient of each arm, from its probability and logit.
    pub bonus: fn(usize, f64, f64) -> f64,
    /// The reference.
    pub reference: Reference,
    /// Whether the updated policy is the one that is returned.
    pub returned: bool,
}

impl Default for Learner {
    fn default() -> Self {
        Learner {
            group: 8,
            advantages: |sampled| {
                let count = sampled.rewards.len() as f64;
                let mean = sampled.mean();
                sampled.rewards.iter().map(|r| (r - mean) * count / (count - 1.0)).collect()
            },
            sampled: |arm, _| arm,
            normaliser: 1.0,
            bonus: |_, _, _| 0.0,
            reference: Reference::Kept,
            returned: true,
        }
    }
}

impl Learner {
    /// The policy after the steps.
    pub fn learn(&self, case: &PolicyUpdateCase, options: &Options) -> PolicyUpdateOutput {
        let start = case.logits.to_vec();
        let rewards = case.rewards.to_vec();
        let reference = match self.reference {
            Reference::Uniform => vec![0.0; start.len()],
            _ => start.clone(),
        };
        let (rate, beta) = (case.learning_rate[()], options.beta);
        let log_reference: Vec<f64> = softmax(&reference).iter().map(|p| p.ln()).collect();
        let mut logits = start.clone();
        let mut chance = Pick::seeded(case.seed[()] as u64);
        for _ in 0..case.steps[()] {
            let policy = softmax(&logits);
            let draw = |chance: &mut Pick| (self.sampled)(drawn(&policy, chance), &policy);
            let arms: Vec<usize> = (0..self.group).map(|_| draw(&mut chance)).collect();
            let sampled: Vec<f64> = arms.iter().map(|arm| rewards[*arm]).collect();
            let advantages =
                (self.advantages)(&Sampled { arms: &arms, rewards: &sampled, of_arms: &rewards });
            let mut gradient = vec![0.0; logits.len()];
            for (arm, advantage) in arms.iter().zip(&advantages) {
                let advantage = advantage / self.group as f64;
                gradient[*arm] += advantage;
                for (gradient, p) in gradient.iter_mut().zip(&policy) {
                    *gradient -= self.normaliser * advantage * p;
                }
            }
            // A reference that is the policy itself is never far from it.
            let ratios: Vec<f64> = match self.reference {
                Reference::Shared => vec![0.0; policy.len()],
                _ => policy.iter().zip(&log_reference).map(|(p, log_q)| p.ln() - log_q).collect(),
            };
            let kl: f64 = policy.iter().zip(&ratios).map(|(p, ratio)| p * ratio).sum();
            for arm in 0..logits.len() {
                let pull = policy[arm] * (ratios[arm] - kl);
                let bonus = (self.bonus)(arm, policy[arm], logits[arm]);
                gradient[arm] += bonus - if beta == 0.0 { 0.0 } else { beta * pull };
            }
            logits.iter_mut().zip(&gradient).for_each(|(z, g)| *z += rate * g);
        }
        let ref_logits = match self.reference {
            Reference::Kept => start.clone(),
            Reference::Uniform => reference,
            Reference::Shared | Reference::Recomputed => logits.clone(),
        };
        let logits = if self.returned { logits } else { start };
        PolicyUpdateOutput {
            logits: Array1::from(logits),
            ref_logits: Some(Array1::from(ref_logits)),
        }
    }
}

/// An arm drawn from a policy.
fn drawn(policy: &[f64], chance: &mut Pick) -> usize {
    let mut left = (chance.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    for (arm, p) in policy.iter().enumerate() {
        if left < *p {
            return arm;
        }
        left -= p;
    }
    policy.len() - 1
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{PolicyUpdate, expected_reward, generate};
    use super::*;
    use shakedown_core::contract::{erased, stream};
    use shakedown_core::value::place::Dtype;
    use shakedown_core::value::record::typed;

    /// What the declared share of 0.1 rests on.
    #[test]
    fn a_right_learner_fails_to_become_better_in_less_than_one_run_in_a_hundred() {
        let options = Options::default();
        let (contract, any) = (erased::of::<PolicyUpdate>(), Arc::new(options.clone()) as _);
        let cases = stream::cases(contract, Vec::new(), 11, &any, Dtype::F32);
        let clear = cases.map(|(_, case)| typed(case)).filter_map(|case: PolicyUpdateCase| {
            let signal = generate::signal(&case, &options)?;
            Some((case, signal.gap))
        });
        let clear: Vec<_> = clear.take(100).collect();
        for advantages in RIGHT {
            let learner = Learner { group: 4, advantages, ..Learner::default() };
            let mut failed = 0;
            for (case, gap) in &clear {
                let before = expected_reward(&case.logits, &case.rewards);
                for seed in 0..40 {
                    let output = learner.learn(&case.seeded(seed), &options);
                    let after = expected_reward(&output.logits, &case.rewards);
                    failed += usize::from(after - before <= 0.01 * gap);
                }
            }
            assert!(failed < 40, "{failed} of 4000 runs");
        }
    }
}
