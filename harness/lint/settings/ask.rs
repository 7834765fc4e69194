//! What rules ask of settings: what must be known, and what follows from several.

use serde_json::Value as Json;

use crate::report::Location;
use crate::rules::{Unjudged, insufficient, not_applicable};
use crate::settings::{Library, Origin, Settings};

/// Algorithms whose advantages are centred on those of other completions of the prompt.
const WITH_A_BASELINE: [&str; 9] =
    ["grpo", "rloo", "opo", "gpg", "gdpo", "group_norm", "reinforce_baseline", "gspo", "cispo"];

/// What says how many steps training takes; TRL counts epochs where it is not set.
const STEPS: [&str; 6] = [
    "trainer.total_training_steps",
    "grpo.max_num_steps",
    "ppo.max_num_steps",
    "dpo.max_num_steps",
    "num-rollout",
    TRL_STEPS,
];
/// TRL's own, which does not log every step.
pub(super) const TRL_STEPS: &str = "max_steps";

/// Switches by which ratios are taken to the probabilities of the engine.
const RATIOS_TO_THE_ENGINE: [&str; 3] = [
    "algorithm.rollout_correction.bypass_mode",
    "async_training.use_rollout_log_probs",
    "use-rollout-logprobs",
];

impl Settings {
    fn known<T>(&self, id: &str, value: Option<T>) -> Result<T, Unjudged> {
        value.ok_or_else(|| insufficient(format!("{id} is not known")))
    }

    /// A number.
    ///
    /// # Errors
    /// It is not known.
    pub fn need_number(&self, id: &str) -> Result<f64, Unjudged> {
        self.known(id, self.number(id))
    }

    /// A text in lower case.
    ///
    /// # Errors
    /// It is not known.
    pub fn need_text(&self, id: &str) -> Result<String, Unjudged> {
        self.known(id, self.text(id))
    }

    /// Whether something is on.
    ///
    /// # Errors
    /// It is not known.
    pub fn need_flag(&self, id: &str) -> Result<bool, Unjudged> {
        self.known(id, self.flag(id))
    }

    /// A field as a number; `None` where it is not known.
    pub(super) fn value(&self, field: &str) -> Option<f64> {
        self.field(field)?.json.as_f64()
    }

    /// A field as a truth value; `None` where it is not known.
    pub(super) fn truth(&self, field: &str) -> Option<bool> {
        match self.field(field)?.json {
            Json::Bool(on) => Some(on),
            Json::Null => Some(false),
            json => json.as_f64().map(|number| number != 0.0),
        }
    }

    /// The line of the first of these settings that stands in a file.
    pub(super) fn location_of(&self, ids: &[&str]) -> Option<Location> {
        ids.iter().find_map(|id| self.location(id))
    }

    /// The line of the first of these fields that stands in a file.
    pub fn field_location(&self, fields: &[&str]) -> Option<Location> {
        let origins = |field: &&str| {
            self.fields.get(*field).map(|value| &value.origin).or_else(|| self.unread.get(*field))
        };
        fields.iter().find_map(|field| match origins(field)? {
            Origin::Line(location) => Some(location.clone()),
            _ => None,
        })
    }

    /// How many steps training takes, and the field that says so; `None` where none does.
    pub fn steps(&self) -> Option<(&'static str, f64)> {
        let steps = |field: &str| self.value(field).filter(|steps| *steps > 0.0);
        STEPS.iter().find_map(|field| Some((*field, steps(field)?)))
    }

    /// Whether advantages are centred within groups; `None` where the algorithm is not known.
    pub fn has_a_baseline(&self) -> Option<bool> {
        let Some(name) = self.text("algorithm") else {
            // What TRL has groups for centres rewards in them.
            let of_trl = self.library == Some(Library::Trl) && self.number("group").is_some();
            return of_trl.then_some(true);
        };
        let name = name.replace('-', "_");
        let centred = WITH_A_BASELINE.iter().any(|one| name.contains(one));
        Some(centred || name.ends_with("_baseline"))
    }

    /// Asks that advantages are centred within groups.
    ///
    /// # Errors
    /// They are not, or the algorithm is not known.
    pub(super) fn with_a_baseline(&self) -> Result<(), Unjudged> {
        match self.has_a_baseline() {
            Some(true) => Ok(()),
            Some(false) => Err(not_applicable("this algorithm does not compare within groups")),
            None => Err(insufficient("algorithm is not known")),
        }
    }

    /// Whether it is known to learn from rewards or preferences. Of what TRL and many others call a
    /// field, supervised training has most too.
    pub(super) fn is_rl(&self) -> bool {
        let is_by_library = !matches!(self.library, None | Some(Library::Trl));
        let has = |id: &str| self.values.contains_key(id);
        is_by_library || self.call.is_some() || has("algorithm") || has("group") || has("kl.loss")
    }

    /// Whether it trains on preferred and rejected completions.
    pub fn learns_from_pairs(&self) -> bool {
        self.text("algorithm").is_some_and(|name| ["dpo", "kto", "orpo", "cpo"].contains(&&*name))
    }

    /// A batch of rollouts and one update of it, in the same unit.
    ///
    /// # Errors
    /// One of them is not known.
    pub(super) fn batches(&self) -> Result<(f64, f64), Unjudged> {
        if self.learns_from_pairs() {
            return Err(not_applicable("pairs are not sampled while training"));
        }
        if let Some(steps) = self.trl_steps() {
            return Ok(steps);
        }
        if self.fields.keys().any(|name| name.starts_with("env.train.")) {
            return Err(not_applicable("an episode in an environment gives many rows"));
        }
        let has_data = self.fields.keys().any(|name| name.starts_with("data."));
        if self.library == Some(Library::Verl) && !has_data {
            return Err(insufficient("a part of a configuration says nothing of its data"));
        }
        let prompts = self.need_number("batch.prompts")?;
        let update = self.need_number("batch.update")?;
        // verl counts both in prompts.
        match self.library {
            Some(Library::Verl) => Ok((prompts, update)),
            _ => Ok((prompts * self.need_number("group")?, update)),
        }
    }

    /// Both in micro-batches, where the number of processes, which both have, is not known.
    fn trl_steps(&self) -> Option<(f64, f64)> {
        let is_open = |name: &str| self.field(name).is_some_and(|value| value.json.is_null());
        if self.library != Some(Library::Trl) || !is_open("generation_batch_size") {
            return None;
        }
        let accumulated = self.value("gradient_accumulation_steps")?;
        match is_open("steps_per_generation") {
            true => Some((accumulated, accumulated)),
            false => Some((self.value("steps_per_generation")?, accumulated)),
        }
    }

    /// How many updates a batch of rollouts is used for; `None` where that is not known.
    pub fn updates(&self) -> Option<f64> {
        let (batch, update) = self.batches().ok()?;
        let passes = self.number("batch.passes").unwrap_or(1.0);
        (batch > 0.0 && update > 0.0).then(|| (batch / update).ceil() * passes)
    }

    /// Whether importance weights correct for the engine's own probabilities. Where these are the
    /// old ones of the ratio, the ratio itself does.
    ///
    /// # Errors
    /// It is not known.
    pub(super) fn is_corrected(&self) -> Result<bool, Unjudged> {
        if RATIOS_TO_THE_ENGINE.iter().any(|field| self.truth(field) == Some(true)) {
            return Ok(true);
        }
        let value = self.known("correction", self.values.get("correction"))?;
        Ok(match &value.json {
            Json::Null | Json::Bool(false) => false,
            Json::String(text) => !["none", "null", "false", ""].contains(&&*text.to_lowercase()),
            _ => true,
        })
    }
}
