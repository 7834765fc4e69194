//! Simulated runs: a table policy that is trained by real policy gradients in milliseconds, with a
//! switch for each bug that rules must find. What it logs is what training did, under the names of
//! a library.

mod advantages;
pub mod bug;
mod completion;
mod critic;
mod log;
mod measures;
mod pairs;
mod plans;
mod policy;
pub mod random;
mod rollout;
mod task;
mod train;
mod update;

use std::collections::HashMap;

use crate::runs::Run;
use crate::runs::recorder::Recorder;
use crate::runs::row::Cell;
use crate::settings::{Library, Origin, Settings, Value};
use bug::Bug;
pub use plans::LIBRARIES;

/// How a policy is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Advantages are rewards less the mean of their group, over its deviation.
    Grpo,
    /// Advantages are rewards less the mean of the others of the group.
    Rloo,
    /// Advantages are rewards less the mean of the batch, over its deviation.
    Reinforce,
    /// Advantages are estimated with a critic.
    Ppo,
    /// Learns from pairs.
    Dpo,
}

/// How the learning rate changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// It stays.
    Constant,
    /// It falls to 0 in a line.
    Linear,
    /// It falls to a tenth as a cosine does.
    Cosine,
}

/// What holds the policy near its reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Penalty {
    /// Nothing; no KL is computed.
    None,
    /// k3 in the loss, with this weight.
    Loss(f64),
    /// k1 in the reward, with this weight.
    Reward(f64),
}

/// A simulated training.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// What is random follows from it.
    pub seed: u64,
    /// What is wrong with it.
    pub bug: Option<Bug>,
    /// Whose names the metrics have.
    pub library: Library,
    /// How the policy is trained.
    pub algorithm: Algorithm,
    /// How many batches are trained on.
    pub steps: usize,
    /// Of how many steps a row is the mean.
    pub steps_per_row: usize,
    /// How many prompts a batch has.
    pub prompts: usize,
    /// How many completions a prompt gets.
    pub group: usize,
    /// Into how many updates a batch is divided.
    pub updates: usize,
    /// How often all of a batch is used.
    pub passes: usize,
    /// The learning rate as a large model has it; the steps of a table are ten million times
    /// larger.
    pub rate: f64,
    /// How it changes.
    pub schedule: Schedule,
    /// Over how many steps it rises from 0 at the start.
    pub warmup: usize,
    /// How many tokens a completion may have.
    pub limit: usize,
    /// How many tokens a prompt may have.
    pub prompt_limit: usize,
    /// What holds the policy near its reference.
    pub penalty: Penalty,
    /// The weight of the entropy bonus.
    pub entropy: f64,
    /// How far a ratio may be below and above 1.
    pub clip: [f64; 2],
    /// The largest norm of a gradient.
    pub max_norm: f64,
    /// How good the policy is at the start, in nats of the right answers' logits.
    pub skill: f64,
    /// How much less likely the policy ends its thoughts at the start, in nats.
    pub thinking: f64,
    /// The weight of the form in the reward.
    pub format: f64,
    /// What rewards are multiplied by, and what is added to them.
    pub reward: [f64; 2],
    /// After how many steps held-out prompts are scored.
    pub eval_every: Option<usize>,
    /// How much of a step reaches the same situations after other prompts, as shared weights do.
    pub sharing: f64,
    /// How many batches wait between the engine and the trainer.
    pub queue: usize,
    /// Whether the rollouts are those of an agent, whose actions are parsed.
    pub has_actions: bool,
    /// Whether importance weights correct for the engine.
    pub is_corrected: bool,
}

/// One row of a log, under the names of a library.
pub type Row = Vec<(String, f64)>;

impl Simulation {
    /// Trains, and gives what was logged.
    pub fn rows(&self) -> Vec<Row> {
        let logged = match self.algorithm {
            Algorithm::Dpo => pairs::train(self),
            _ => train::train(self),
        };
        let mut logged = log::means(logged, self.steps_per_row);
        if self.bug == Some(Bug::StoppedEarly) {
            logged.truncate(logged.len() * 6 / 10);
        }
        let mut names = log::Names::of(self.library);
        logged.into_iter().map(|row| names.row(row, self.bug)).collect()
    }

    /// Trains, and reads the log. The settings are known.
    pub fn run(&self) -> Run {
        Run { settings: self.settings(), ..read(&self.rows()) }
    }

    /// The settings that its configuration would have.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings { library: Some(self.library), ..Settings::default() };
        let completions = (self.prompts * self.group) as f64;
        let (kl_loss, kl_reward) = match self.penalty {
            Penalty::None => (0.0, 0.0),
            Penalty::Loss(weight) => (weight, 0.0),
            Penalty::Reward(weight) => (0.0, weight),
        };
        let numbers = [
            ("group", self.group as f64),
            ("batch.prompts", self.prompts as f64),
            ("batch.update", self.in_units_of_batch(completions / self.updates as f64)),
            ("batch.passes", self.passes as f64),
            ("lr", self.rate),
            ("kl.loss", kl_loss),
            ("kl.reward", kl_reward),
            ("clip.low", self.clip[0]),
            ("clip.high", self.clip[1]),
            ("entropy.coef", self.entropy),
            ("temperature", 1.0),
            ("length.completion", self.limit as f64),
            ("length.prompt", self.prompt_limit as f64),
            ("gradient.clip", self.max_norm),
        ];
        for (id, number) in numbers {
            settings.set(id, number, Origin::Flag);
        }
        if let Some(field) = self.steps_field() {
            let value = Value { json: self.steps.into(), origin: Origin::Flag };
            settings.fields.insert(field.to_owned(), value);
        }
        let algorithm = match self.algorithm {
            Algorithm::Grpo => "grpo",
            Algorithm::Rloo => "rloo",
            Algorithm::Reinforce => "reinforce_plus_plus",
            Algorithm::Ppo => "gae",
            Algorithm::Dpo => "dpo",
        };
        settings.set("algorithm", algorithm, Origin::Default);
        match self.penalty {
            Penalty::None => {}
            Penalty::Loss(_) => settings.set("kl.estimator", "k3", Origin::Default),
            Penalty::Reward(_) => settings.set("kl.estimator", "k1", Origin::Default),
        }
        settings
    }

    /// The field that says how many steps there are.
    fn steps_field(&self) -> Option<&'static str> {
        match self.library {
            Library::Trl => Some("max_steps"),
            Library::Verl => Some("trainer.total_training_steps"),
            Library::NemoRl => Some("grpo.max_num_steps"),
            Library::Slime => Some("num-rollout"),
            _ => None,
        }
    }

    /// verl counts an update's share of the batch in prompts, others in completions.
    fn in_units_of_batch(&self, completions: f64) -> f64 {
        match self.library {
            Library::Verl => completions / self.group as f64,
            _ => completions,
        }
    }

    /// The learning rate of a step, counted from 1.
    fn rate_at(&self, step: usize) -> f64 {
        let end = match self.bug {
            Some(Bug::ScheduleShort) => self.steps * 6 / 10,
            _ => self.steps,
        };
        let done = ((step - 1) as f64 / end as f64).min(1.0);
        let left = match self.schedule {
            Schedule::Constant if step <= end => 1.0,
            Schedule::Constant => 0.0,
            Schedule::Linear => 1.0 - done,
            Schedule::Cosine if step > end => 0.0,
            Schedule::Cosine => 0.1 + 0.45 * (1.0 + (std::f64::consts::PI * done).cos()),
        };
        let warm = (step as f64 / self.warmup.max(1) as f64).min(1.0);
        let grows = matches!(self.bug, Some(Bug::RateTooHigh | Bug::UpdatesUnclipped));
        let growth = if grows { 1.035_f64.powi(step as i32) } else { 1.0 };
        let set = match self.bug {
            Some(Bug::RateOverwritten) if self.seed.is_multiple_of(2) => 4.0,
            Some(Bug::RateOverwritten) => 0.25,
            _ => 1.0,
        };
        self.rate * left * warm * growth * set
    }
}

/// Reads rows as those of a log.
pub fn read(rows: &[Row]) -> Run {
    read_as(rows, Cell::from)
}

/// Reads rows as those of a log that has this many decimals.
pub fn read_rounded(rows: &[Row], decimals: i32) -> Run {
    let unit = 10.0_f64.powi(-decimals);
    let resolution = if decimals <= 4 { 0.5 * unit } else { 0.0 };
    read_as(rows, |value| Cell { value: (value / unit).round() * unit, resolution })
}

fn read_as(rows: &[Row], cell: impl Fn(f64) -> Cell) -> Run {
    let mut recorder = Recorder::new(HashMap::new());
    for (index, row) in rows.iter().enumerate() {
        let cells = row.iter().map(|(name, value)| (name.as_str(), cell(*value)));
        recorder.row(index + 1, cells);
    }
    Run::new("simulated".to_owned(), Vec::new(), "simulated", recorder.finish())
}
