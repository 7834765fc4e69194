//! Training on a softmax bandit: REINFORCE, PPO and GRPO where every completion is one token.

use shakedown::author::Component;
use shakedown::contracts::policy_update::{
    Options, PolicyUpdate, PolicyUpdateCase, PolicyUpdateOutput,
};
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor};

use crate::arithmetic;
use crate::chance::Chance;
use crate::completions::Completions;
use crate::grpo::Grpo;
use crate::packed::{Rows, packed_logits};
use crate::ppo::Ppo;
use crate::reinforce::Reinforce;

/// How a policy is trained.
#[derive(Clone, Debug)]
pub struct Training {
    /// How often completions are sampled.
    pub steps: usize,
    /// The step of the gradient descent.
    pub learning_rate: f64,
    /// Of all that is sampled.
    pub seed: i64,
    /// Completions, or pairs, that are sampled in a step.
    pub batch: i64,
    /// Completions of one prompt.
    pub group: i64,
    /// Steps of the gradient descent on the same completions.
    pub epochs: usize,
    /// Tokens of a row into which GRPO packs completions; without it they are padded.
    pub capacity: Option<i64>,
}

impl Training {
    /// As a case of `policy-update` asks for it.
    pub(crate) fn of(case: &PolicyUpdateCase<Tensors>) -> Training {
        Training {
            steps: case.steps.int64_value(&[]) as usize,
            learning_rate: case.learning_rate.double_value(&[]),
            seed: case.seed.int64_value(&[]),
            capacity: None, // a policy is trained a thousand times
            ..Training::default()
        }
    }
}

impl Default for Training {
    fn default() -> Self {
        Training {
            steps: 100,
            learning_rate: 0.2,
            seed: 0,
            batch: 32,
            group: 8,
            epochs: 2,
            capacity: Some(8),
        }
    }
}

/// What is known of the policy after a step of training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The objective, before the last descent of the step.
    pub loss: f64,
    /// The expected reward of the policy, exactly.
    pub expected_reward: f64,
    /// KL(policy ‖ starting policy) in nats, exactly.
    pub kl: f64,
    /// The entropy of the policy in nats.
    pub entropy: f64,
}

/// [`reinforce`] as a component.
pub fn reinforce_component(options: Options) -> impl Component<PolicyUpdate> {
    let mut objective = Reinforce::default();
    objective.ranks.parts = 1; // a policy is trained a thousand times
    objective.policy.beta = options.beta;
    tch::<PolicyUpdate>(move |case| {
        let training = Training::of(case);
        updated(reinforce(&case.logits, &case.rewards, &objective, &training, &mut |_| ()))
    })
}

/// [`ppo`] as a component, without the bonus for entropy: it moves a policy where rewards do not.
pub fn ppo_component(options: Options) -> impl Component<PolicyUpdate> {
    let mut objective = Ppo { entropy_coefficient: 0.0, ..Ppo::default() };
    objective.rewards.beta = options.beta;
    tch::<PolicyUpdate>(move |case| {
        let training = Training::of(case);
        updated(ppo(&case.logits, &case.rewards, &objective, &training, &mut |_| ()))
    })
}

/// [`grpo`] as a component.
pub fn grpo_component(options: Options) -> impl Component<PolicyUpdate> {
    let mut objective = Grpo::default();
    objective.policy.beta = options.beta;
    tch::<PolicyUpdate>(move |case| {
        let training = Training::of(case);
        updated(grpo(&case.logits, &case.rewards, &objective, &training, &mut |_| ()))
    })
}

pub(crate) fn updated(logits: Tensor) -> PolicyUpdateOutput<Tensors> {
    PolicyUpdateOutput { logits, ref_logits: None }
}

/// Trains a softmax policy with REINFORCE; gives its logits.
///
/// # Shapes
/// `A` arms: logits and rewards `[A]`, the result `[A]`.
///
/// # Units
/// Logits in nats. Half formats are trained and answered in f32.
///
/// # Errors
/// Panics if the logits are not finite.
///
/// # Source
/// See [`Reinforce`]. One step of descent a batch: REINFORCE is on-policy.
pub fn reinforce(
    logits: &Tensor,
    rewards: &Tensor,
    objective: &Reinforce,
    training: &Training,
    watch: &mut dyn FnMut(Step),
) -> Tensor {
    let training = Training { epochs: 1, ..training.clone() };
    train(logits, rewards, &training, watch, |agent, batch| {
        objective.loss(&agent.per_token(batch), &batch.completions).loss
    })
}

/// Trains a softmax policy with PPO, and the value of the only state with it; gives its logits.
///
/// # Shapes
/// As [`reinforce`].
///
/// # Units
/// As [`reinforce`].
///
/// # Errors
/// Panics if the logits are not finite.
///
/// # Source
/// See [`Ppo`].
pub fn ppo(
    logits: &Tensor,
    rewards: &Tensor,
    objective: &Ppo,
    training: &Training,
    watch: &mut dyn FnMut(Step),
) -> Tensor {
    train(logits, rewards, training, watch, |agent, batch| {
        let values = agent.value.expand_as(&batch.old_values);
        let logits = agent.per_token(batch);
        objective.loss(&logits, &values, &batch.old_values, &batch.completions).loss
    })
}

/// Trains a softmax policy with GRPO; gives its logits.
///
/// # Shapes
/// As [`reinforce`].
///
/// # Units
/// As [`reinforce`].
///
/// # Errors
/// Panics if the logits are not finite.
///
/// # Source
/// See [`Grpo`].
pub fn grpo(
    logits: &Tensor,
    rewards: &Tensor,
    objective: &Grpo,
    training: &Training,
    watch: &mut dyn FnMut(Step),
) -> Tensor {
    train(logits, rewards, training, watch, |agent, batch| {
        let Completions { tokens, mask, .. } = &batch.completions;
        let model = |rows: &Rows| {
            let [count, width] = rows.tokens.size()[..] else { panic!("rows are [B, L]") };
            agent.logits.expand([count, width, -1], false)
        };
        let logits = match training.capacity {
            Some(capacity) => packed_logits(tokens, mask, capacity, &model),
            None => agent.per_token(batch),
        };
        objective.loss(&logits, &batch.completions).loss
    })
}

/// What one step samples.
struct Batch {
    completions: Completions,
    /// `[N, 1]`: what the value function thought when it was sampled.
    old_values: Tensor,
}

/// All that is trained.
struct Agent {
    /// `[A]`.
    logits: Tensor,
    /// A scalar: the value of the only state.
    value: Tensor,
}

impl Agent {
    fn new(logits: &Tensor) -> Agent {
        let logits = start(logits);
        let value = Tensor::zeros([], (logits.kind(), logits.device()));
        Agent { logits: logits.set_requires_grad(true), value: value.set_requires_grad(true) }
    }

    /// `[N, 1, A]`: the logits as a model gives them, at each token of a batch.
    fn per_token(&self, batch: &Batch) -> Tensor {
        self.logits.expand([batch.old_values.size()[0], 1, -1], false)
    }

    fn sample(
        &self,
        rewards: &Tensor,
        reference: &Tensor,
        training: &Training,
        chance: &mut Chance,
    ) -> Batch {
        let log_probs = self.logits.detach().log_softmax(-1, None);
        // Inference engines compute in half formats.
        let engine = log_probs.to_kind(Kind::BFloat16).to_kind(log_probs.kind());
        let engine = engine.log_softmax(-1, None);
        let arms = chance.draw(&engine.exp(), training.batch);
        let at_arms = |numbers: &Tensor| numbers.gather(0, &arms, false).unsqueeze(1);
        let rows = Tensor::arange(training.batch, (Kind::Int64, arms.device()));
        let completions = Completions {
            mask: arms.ones_like().to_kind(Kind::Bool).unsqueeze(1),
            rewards: at_arms(rewards),
            groups: rows.divide_scalar_mode(training.group, "floor"),
            old_log_probs: at_arms(&log_probs),
            sampler_log_probs: at_arms(&engine),
            ref_log_probs: at_arms(&reference.log_softmax(-1, None)),
            tokens: arms.unsqueeze(1),
        };
        Batch { old_values: self.value.detach().expand([training.batch, 1], false), completions }
    }
}

fn train(
    logits: &Tensor,
    rewards: &Tensor,
    training: &Training,
    watch: &mut dyn FnMut(Step),
    objective: impl Fn(&Agent, &Batch) -> Tensor,
) -> Tensor {
    let mut chance = Chance::new(training.seed);
    let reference = start(logits);
    let rewards = rewards.detach().to_kind(reference.kind());
    let agent = Agent::new(logits);
    for _ in 0..training.steps {
        let batch = agent.sample(&rewards, &reference, training, &mut chance);
        let mut last = f64::NAN;
        for _ in 0..training.epochs {
            let loss = objective(&agent, &batch);
            descend(&loss, &[&agent.logits, &agent.value], training.learning_rate);
            last = loss.double_value(&[]);
        }
        watch(step(last, &agent.logits, &rewards, &reference));
    }
    agent.logits.detach()
}

/// The starting policy: a copy that training leaves alone, in a format to compute in.
pub(crate) fn start(logits: &Tensor) -> Tensor {
    logits.detach().to_kind(arithmetic(logits.kind())).copy()
}

/// One step of gradient descent on all parameters that the loss depends on.
pub(crate) fn descend(loss: &Tensor, parameters: &[&Tensor], learning_rate: f64) {
    loss.backward();
    ::tch::no_grad(|| {
        for parameter in parameters {
            let mut gradient = parameter.grad();
            if gradient.defined() {
                let mut parameter = parameter.shallow_clone();
                parameter -= &gradient * learning_rate;
                let _ = gradient.zero_();
            }
        }
    });
}

/// What is known of a policy: a softmax over arms with these rewards.
pub(crate) fn step(loss: f64, logits: &Tensor, rewards: &Tensor, reference: &Tensor) -> Step {
    let log_probs = logits.detach().log_softmax(-1, None);
    let probs = log_probs.exp();
    let gap = &log_probs - reference.log_softmax(-1, None);
    let expected = |numbers: &Tensor| (&probs * numbers).sum(None).double_value(&[]);
    Step {
        loss,
        expected_reward: expected(rewards),
        kl: expected(&gap),
        entropy: -expected(&log_probs),
    }
}
