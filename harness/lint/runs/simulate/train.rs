//! Training on rollouts, step by step.

use std::collections::VecDeque;

use super::advantages;
use super::bug::Bug;
use super::completion::Completion;
use super::critic::Critic;
use super::log::{Log, Logged};
use super::measures;
use super::policy::{END, Gradient, PROMPTS, ROWS, Table};
use super::random::Random;
use super::rollout::{self, Batch};
use super::task::Task;
use super::update::{self, Update};
use super::{Algorithm, Simulation};
use crate::runs::statistics::mean;

/// Trains, and gives what each step logged.
pub(super) fn train(plan: &Simulation) -> Vec<Logged> {
    let mut trainer = Trainer::new(plan);
    let mut saved: Option<Trainer> = None;
    let (save, stop) = (plan.steps * 6 / 10, plan.steps * 3 / 4);
    let mut rows = Vec::with_capacity(plan.steps);
    let mut has_stopped = plan.bug != Some(Bug::Restarted);
    let mut step = 0;
    while step < plan.steps {
        step += 1;
        rows.push(trainer.step(step));
        if step == save && !has_stopped {
            saved = Some(trainer.clone());
        }
        if step == stop
            && let Some(checkpoint) = saved.take()
        {
            (trainer, step, has_stopped) = (checkpoint, save, true);
            trainer.random = Random::new(plan.seed, 77);
        }
    }
    rows
}

/// What each step needs of those before.
#[derive(Clone)]
struct Trainer<'a> {
    plan: &'a Simulation,
    random: Random,
    task: Task,
    policy: Table,
    reference: Table,
    engine: Table,
    critic: Critic,
    /// Batches that wait.
    queue: VecDeque<Batch>,
    /// Weights of the last steps.
    past: VecDeque<Table>,
    /// What the loss is multiplied by.
    weight: f64,
}

/// The nearest number that half a `float32` holds: what an engine in `bfloat16` has.
fn brain_float(x: f64) -> f64 {
    let bits = (x as f32).to_bits();
    f64::from(f32::from_bits((bits + 0x8000) & 0xffff_0000))
}

impl<'a> Trainer<'a> {
    fn new(plan: &'a Simulation) -> Trainer<'a> {
        let mut random = Random::new(plan.seed, 1);
        let task = Task::new(plan.bug, &mut random);
        let policy = task.start(plan, &mut random);
        let reference = match plan.bug {
            Some(Bug::ReferenceDiffers) => policy.perturbed(1.0, &mut random),
            _ => policy.clone(),
        };
        let scale = if plan.bug == Some(Bug::TargetsUnscaled) { 4.0 } else { 1.0 };
        let critic = Critic::new(scale);
        let engine = policy.clone();
        let (queue, past) = Default::default();
        Trainer { plan, random, task, policy, reference, engine, critic, queue, past, weight: 1.0 }
    }

    fn is(&self, bug: Bug) -> bool {
        self.plan.bug == Some(bug)
    }

    fn step(&mut self, step: usize) -> Logged {
        self.synchronise(step);
        let batch = rollout::batch(self.plan, &self.task, &mut self.engine, step, &mut self.random);
        self.queue.push_back(batch);
        let mut batch = match self.queue.len() > self.plan.queue || step < 3 {
            true => self.queue.pop_front().expect("one was pushed"),
            false => self.queue[0].clone(),
        };
        advantages::reward(self.plan, &mut batch, &mut self.random);
        self.old_log_probabilities(&mut batch, step);
        self.weigh(&mut batch);
        advantages::set(self.plan, &mut batch, &mut self.critic, &mut self.random);
        let mut log = Log::of(self.plan.library);
        log.put("step", step as f64);
        measures::batch(self.plan, &self.task, &batch, &mut log);
        if self.plan.queue > 0 {
            let age = (step - batch.step) as f64;
            log.put("stale.mean", age);
            log.put("stale.max", age);
        }
        self.learn_values(&batch, &mut log);
        let rate = self.plan.rate_at(step);
        let before = self.is(Bug::ReferenceFollows).then(|| self.policy.clone());
        let updates = self.update(&mut batch, rate, step);
        if let Some(before) = before {
            self.reference = before;
        }
        measures::updates(self.plan, &updates, &mut log);
        log.put("lr", rate);
        if self.plan.eval_every.is_some_and(|every| step.is_multiple_of(every)) {
            log.put("eval.score", self.evaluate());
        }
        log.row
    }

    /// Gives the engine the weights of the policy.
    fn synchronise(&mut self, step: usize) {
        if self.is(Bug::WeightsNotSynchronised) && step > 1 {
            return;
        }
        let temperature = match self.plan.bug {
            Some(Bug::EngineDiffers) => 0.6,
            Some(Bug::WeightsHeavy) => 1.8,
            _ => 1.0,
        };
        let has_end = !self.is(Bug::EosBanned);
        self.engine.take(&self.policy, |token, logit| match token {
            END if !has_end => -1e9,
            _ => brain_float(logit / temperature),
        });
    }

    /// What the trainer and the reference have for the tokens of the engine.
    fn old_log_probabilities(&mut self, batch: &mut Batch, step: usize) {
        if self.is(Bug::OldStale) {
            self.past.push_back(self.policy.clone());
            if self.past.len() > 12 {
                self.past.pop_front();
            }
        }
        let is_twentieth = step.is_multiple_of(20);
        let outlier = self.is(Bug::GradientOutliers) && is_twentieth;
        let astray = self.is(Bug::KlUnclamped) && is_twentieth;
        for token in batch.tokens_mut() {
            token.reference = self.reference.log(token.row)[token.token];
            token.old = match self.past.front_mut() {
                Some(past) => past.log(token.row)[token.token],
                None => self.policy.log(token.row)[token.token],
            };
            if self.plan.bug == Some(Bug::ReferenceShared) {
                token.reference = self.policy.log(token.row)[token.token];
            }
            if self.plan.bug == Some(Bug::DropoutInReference) {
                token.reference += 0.45 * self.random.normal();
            }
            if self.plan.bug == Some(Bug::DropoutInOld) {
                token.old += 0.3 * self.random.normal();
            }
        }
        let count = batch.tokens().count();
        let at = self.random.below(count);
        if astray && let Some(token) = batch.tokens_mut().nth(at) {
            // A router sends one token of the reference to another expert.
            token.reference += 8.0;
        }
        if outlier {
            // A few neighbours: one of them at least has a negative advantage.
            batch.tokens_mut().skip(at).take(24).for_each(|token| token.old -= 8.0);
        }
    }

    /// Importance weights for the engine, cut at 2.
    fn weigh(&self, batch: &mut Batch) {
        if !self.plan.is_corrected {
            return;
        }
        let is_heavy = self.is(Bug::WeightsHeavy);
        for one in &mut batch.completions {
            let sum = one.tokens.iter().map(|token| token.old - token.engine).sum::<f64>();
            for token in &mut one.tokens {
                let apart = if is_heavy { sum } else { token.old - token.engine };
                token.weight = apart.exp();
            }
        }
    }

    /// All updates of a batch.
    fn update(&mut self, batch: &mut Batch, rate: f64, step: usize) -> Vec<Update> {
        let mut updates = Vec::new();
        let mut gradient = Gradient::default();
        if self.is(Bug::GradientDecays) {
            self.weight *= 0.95;
        }
        batch.tokens_mut().for_each(|token| token.weight = token.weight.min(2.0));
        let size = batch.completions.len().div_ceil(self.plan.updates);
        for _ in 0..self.plan.passes {
            self.random.shuffle(&mut batch.completions);
            for part in batch.completions.chunks_mut(size) {
                if self.is(Bug::OldIsCurrent) {
                    self.forget_old(part);
                }
                updates.push(update::step(
                    self.plan,
                    part,
                    &mut self.policy,
                    &mut gradient,
                    rate,
                    self.weight,
                ));
            }
        }
        if self.is(Bug::Fp16Overflow) && step > self.plan.steps / 2 {
            self.overflow(&mut updates);
        }
        updates
    }

    fn forget_old(&mut self, part: &mut [Completion]) {
        for token in part.iter_mut().flat_map(|one| &mut one.tokens) {
            token.old = self.policy.log(token.row)[token.token];
        }
    }

    /// The sums of half precision end at 65,504: the optimiser divides infinity by infinity.
    fn overflow(&mut self, updates: &mut [Update]) {
        let scaled = updates.iter().map(|one| one.grad_norm).fold(0.0, f64::max) * 16_777_216.0;
        if scaled > 65_504.0 {
            let nothing = [f64::NAN; super::policy::TOKENS];
            (0..ROWS).for_each(|row| self.policy.add(row, &nothing, 1.0));
            updates.iter_mut().for_each(|one| one.grad_norm = f64::INFINITY);
        }
    }

    /// Scores completions of held-out prompts by what is meant.
    fn evaluate(&mut self) -> f64 {
        let plan = Simulation { bug: None, ..self.plan.clone() };
        let mut right = Vec::new();
        for index in 0..48 {
            let prompt = index % PROMPTS;
            let one =
                rollout::completion(&plan, &self.task, &mut self.policy, prompt, &mut self.random);
            right.push(if self.task.is_meant(prompt, &one) { 1.0 } else { 0.0 });
        }
        mean(&right)
    }

    fn learn_values(&mut self, batch: &Batch, log: &mut Log) {
        if self.plan.algorithm != Algorithm::Ppo {
            return;
        }
        let found = self.critic.learn(batch, !self.is(Bug::CriticFrozen));
        log.put("value.loss", found.loss);
        log.put("value.explained", found.explained);
        log.put("value.grad_norm", found.grad_norm);
        log.put("value.clip", 0.0);
    }
}
