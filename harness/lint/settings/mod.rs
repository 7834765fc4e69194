//! What a run was started with: its configuration, read into settings whose names are the same for
//! all libraries, and the rules about them.

pub mod fields;
pub mod formats;
pub mod rules;

mod ask;
mod derive;
mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::report::{Location, Setting};

/// A library whose logs and configurations are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Library {
    /// TRL.
    Trl,
    /// verl.
    Verl,
    /// OpenRLHF.
    OpenRlhf,
    /// NeMo-RL.
    NemoRl,
    /// slime.
    Slime,
    /// prime-rl.
    PrimeRl,
    /// torchtune.
    Torchtune,
    /// open-instruct.
    OpenInstruct,
    /// LLaMA-Factory.
    LlamaFactory,
}

impl Library {
    /// Every library.
    pub const ALL: [Library; 9] = [
        Library::Trl,
        Library::Verl,
        Library::OpenRlhf,
        Library::NemoRl,
        Library::Slime,
        Library::PrimeRl,
        Library::Torchtune,
        Library::OpenInstruct,
        Library::LlamaFactory,
    ];

    /// What it calls itself, as in `metrics.yaml`: `NeMo-RL`.
    pub fn name(self) -> &'static str {
        match self {
            Library::Trl => "trl",
            Library::Verl => "verl",
            Library::OpenRlhf => "OpenRLHF",
            Library::NemoRl => "NeMo-RL",
            Library::Slime => "slime",
            Library::PrimeRl => "prime-rl",
            Library::Torchtune => "torchtune",
            Library::OpenInstruct => "open-instruct",
            Library::LlamaFactory => "LLaMA-Factory",
        }
    }
}

/// The settings of a run. What is not here is **unknown**, and a rule that needs it says nothing.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The library that they are for.
    pub library: Option<Library>,
    /// Another library that they are for, by its name; or the fork of `library`.
    pub other: Option<String>,
    /// By the ids of `fields.yaml`: `lr`, `group`, `kl.loss`.
    pub values: BTreeMap<String, Value>,
    /// Every field as the file writes it: `actor_rollout_ref.rollout.n`, `num_generations`.
    pub fields: BTreeMap<String, Value>,
    /// Fields that are set to what could not be read, each with the place.
    pub unread: BTreeMap<String, Origin>,
    /// Fields that hydra's `+` adds on purpose, whether the library knows them or not.
    pub added: BTreeSet<String>,
    /// What takes the fields: `GRPOConfig`, `verl.trainer.main_ppo`; `None` where that is not
    /// known.
    pub call: Option<String>,
    /// Whether all of the configuration was read: only then are the library's defaults known.
    pub is_complete: bool,
    /// Whether fields besides those of `call` may be taken: by a script's own code, or by parts
    /// that the library hands them on to.
    pub is_open: bool,
    /// Whether the library wrote it, with what follows from other fields filled in.
    pub is_resolved: bool,
    /// Whether it is for supervised training or distillation.
    pub is_supervised: bool,
    /// Paths of the files that it was read from.
    pub files: Vec<PathBuf>,
    /// How they are written: `YAML`.
    pub format: String,
    /// What went wrong while it was read.
    pub warnings: Vec<String>,
}

/// The value of a setting, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// As JSON: a number, a text, a truth value, null.
    pub json: Json,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    Line(Location),
    /// Given by hand: `--set`, `--processes`, `--context`, or a dictionary.
    Flag,
    /// The library's default.
    Default,
    /// A metric that the run logged.
    Metric,
}

impl Settings {
    /// A number; `None` where it is unknown, or no number.
    pub fn number(&self, id: &str) -> Option<f64> {
        let json = &self.values.get(id)?.json;
        json.as_f64().or_else(|| json.as_str()?.parse().ok())
    }

    /// A text in lower case; `None` where it is unknown, or no text.
    pub fn text(&self, id: &str) -> Option<String> {
        Some(self.values.get(id)?.json.as_str()?.to_lowercase())
    }

    /// Whether something is on; `None` where that is unknown.
    pub fn flag(&self, id: &str) -> Option<bool> {
        match &self.values.get(id)?.json {
            Json::Bool(on) => Some(*on),
            Json::Null => Some(false),
            Json::Number(number) => number.as_f64().map(|number| number != 0.0),
            Json::String(text) => match text.to_lowercase().as_str() {
                "true" | "yes" | "on" => Some(true),
                "false" | "no" | "off" | "none" | "null" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// The line of a setting, where it stands in a file.
    pub fn location(&self, id: &str) -> Option<Location> {
        match &self.values.get(id)?.origin {
            Origin::Line(location) => Some(location.clone()),
            _ => None,
        }
    }

    /// Sets what was given by hand or read from a metric.
    pub fn set(&mut self, id: &str, json: impl Into<Json>, origin: Origin) {
        self.values.insert(id.to_owned(), Value { json: json.into(), origin });
    }

    /// All of them, as reports show them.
    pub fn report(&self) -> BTreeMap<String, Setting> {
        let one = |value: &Value| Setting {
            value: value.json.clone(),
            origin: match &value.origin {
                Origin::Line(Location { file, line }) => format!("{file}:{line}"),
                Origin::Flag => "flag".to_owned(),
                Origin::Default => "default".to_owned(),
                Origin::Metric => "metric".to_owned(),
            },
        };
        self.values.iter().map(|(id, value)| (id.clone(), one(value))).collect()
    }
}
