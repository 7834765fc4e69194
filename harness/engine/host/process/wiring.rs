//! How a Python function is found, made and called, where its names alone do not say it.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use shakedown_core::value::choice::choice;
use shakedown_core::value::wire::Message;

choice! {
    /// How a Python function takes the groups of a batch, where not as rows that each have the
    /// number of their group.
    pub enum Batch {
        /// Arrays `[B, G, …]` of `B` groups of `G` rows, where `layout` is `contiguous`.
        Groups = "groups",
        /// Lists, one for each group, of its rows.
        Lists = "lists",
        /// One group at a time: it is called for each.
        Group = "group",
    }
}

/// What a manifest says of a Python function besides its target and its signature.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wiring {
    /// Inputs and options, each with the name by which the function takes it.
    pub args: BTreeMap<String, String>,
    /// How it takes groups.
    pub batch: Option<Batch>,
    /// The columns that get the gold answers besides those that are called like answers.
    pub answer_columns: Vec<String>,
    /// Other columns of a reward function: the name of an input, `{value: …}`, or what every row
    /// has.
    pub columns: Map<String, Json>,
    /// What the constructor of its class takes; `None` where nothing is said.
    pub init: Option<Map<String, Json>>,
    /// The function that makes other objects, as a target.
    pub setup: Option<String>,
    /// The environment of its process, besides the harness's own.
    pub env: BTreeMap<String, String>,
    /// Modules that are stood in for where they are not there.
    pub stub: Vec<String>,
}

impl Wiring {
    /// Adds what `load` says of it.
    pub(super) fn write(&self, message: &mut Message) {
        fn json(value: &impl serde::Serialize) -> String {
            serde_json::to_string(value).expect("names and values can be written")
        }
        for (key, is_there, text) in [
            ("args", !self.args.is_empty(), json(&self.args)),
            ("batch", self.batch.is_some(), json(&self.batch)),
            ("answer_columns", !self.answer_columns.is_empty(), json(&self.answer_columns)),
            ("columns", !self.columns.is_empty(), json(&self.columns)),
            ("init", self.init.is_some(), json(&self.init)),
            ("stub", !self.stub.is_empty(), json(&self.stub)),
        ] {
            if is_there {
                message.text(key, text);
            }
        }
        if let Some(setup) = &self.setup {
            message.text("setup", &**setup);
        }
    }

    /// What an import depends on.
    pub(super) fn of_import(&self) -> impl std::fmt::Debug {
        (&self.env, &self.stub, &self.setup)
    }
}
