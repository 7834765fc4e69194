//! What each library calls the settings, their defaults, and the fields that it knows: the table
//! `fields.yaml`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value as Json;

use super::{Library, Origin, Settings, Value};
use shakedown_core::value::yaml;

/// A library's fields, by the call or command that takes them.
type ByCall = BTreeMap<String, Vec<&'static str>>;

/// What holds for every call of a library.
const ANY: &str = "any";

/// What every trainer of TRL takes, besides its own.
const TRL_SHARED: [&str; 2] = ["TrainingArguments", "_BaseConfig"];

/// What TRL's commands and trainers take, besides the configuration.
const TRL_PARSED: [&str; 4] = ["ModelConfig", "ScriptArguments", "GRPOScriptArguments", "Trainer"];

/// Where a setting comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// The first of these that is set.
    First(Vec<Product>),
    /// Always this.
    Always(Json),
    /// What a function says.
    Rule(String),
}

/// Fields multiplied, then divided by others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Product {
    pub(super) factors: Vec<String>,
    pub(super) divisors: Vec<String>,
}

impl Source {
    fn new(text: &str) -> Source {
        if let Some(rule) = text.strip_prefix("rule ") {
            return Source::Rule(rule.trim().to_owned());
        }
        match text.strip_prefix("= ") {
            Some(text) => Source::Always(scalar(text.trim())),
            None => Source::First(text.split(", ").map(Product::new).collect()),
        }
    }
}

impl Product {
    fn new(text: &str) -> Product {
        let mut product = Product { factors: Vec::new(), divisors: Vec::new() };
        let mut divides = false;
        for word in text.split_whitespace() {
            match word {
                "*" => divides = false,
                "/" => divides = true,
                field if divides => product.divisors.push(field.to_owned()),
                field => product.factors.push(field.to_owned()),
            }
        }
        product
    }
}

/// The table, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    versions: BTreeMap<String, String>,
    settings: Vec<Entry>,
    defaults: BTreeMap<String, BTreeMap<String, BTreeMap<String, Json>>>,
    known: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    removed: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// One setting, with where each library has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    trl: Option<String>,
    verl: Option<String>,
    openrlhf: Option<String>,
    nemo: Option<String>,
    slime: Option<String>,
}

impl Entry {
    fn of(&self, library: Library) -> Option<&str> {
        let text = match library {
            Library::Trl => &self.trl,
            Library::Verl => &self.verl,
            Library::OpenRlhf => &self.openrlhf,
            Library::NemoRl => &self.nemo,
            Library::Slime => &self.slime,
            Library::PrimeRl
            | Library::Torchtune
            | Library::OpenInstruct
            | Library::LlamaFactory => &None,
        };
        text.as_deref()
    }
}

/// The name of a library in the table; none where it has nothing there.
fn key(library: Library) -> Option<&'static str> {
    match library {
        Library::Trl => Some("trl"),
        Library::Verl => Some("verl"),
        Library::OpenRlhf => Some("openrlhf"),
        Library::NemoRl => Some("nemo"),
        Library::Slime => Some("slime"),
        Library::PrimeRl | Library::Torchtune | Library::OpenInstruct | Library::LlamaFactory => {
            None
        }
    }
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| yaml::parse(include_str!("fields.yaml")).expect("fields.yaml is whole"))
}

/// The version of a library that the table describes; none where it is not known.
pub fn version(library: Library) -> Option<&'static str> {
    Some(table().versions.get(key(library)?)?.as_str())
}

/// The ids of all settings: `lr`, `group`, `kl.loss`.
pub fn ids() -> impl Iterator<Item = &'static str> {
    table().settings.iter().map(|entry| &*entry.id)
}

/// Where a library has each setting.
pub(super) fn sources(library: Library) -> impl Iterator<Item = (&'static str, Source)> {
    let source = move |entry: &'static Entry| Some((&*entry.id, Source::new(entry.of(library)?)));
    table().settings.iter().filter_map(source)
}

/// The fields that a call or command knows; none where the list of them is not known. For
/// `GRPOConfig` they include those that TRL's own commands take besides.
pub fn known(library: Library, call: Option<&str>) -> &'static [&'static str] {
    static KNOWN: OnceLock<BTreeMap<String, ByCall>> = OnceLock::new();
    listed(KNOWN.get_or_init(|| by_call(&table().known)), library, call)
}

/// The fields that older versions of a call or command knew.
pub fn removed(library: Library, call: Option<&str>) -> &'static [&'static str] {
    static REMOVED: OnceLock<BTreeMap<String, ByCall>> = OnceLock::new();
    listed(REMOVED.get_or_init(|| by_call(&table().removed)), library, call)
}

fn listed(
    lists: &'static BTreeMap<String, ByCall>,
    library: Library,
    call: Option<&str>,
) -> &'static [&'static str] {
    let Some(calls) = key(library).and_then(|key| lists.get(key)) else { return &[] };
    let own = call.and_then(|call| calls.get(call));
    own.or_else(|| calls.get(ANY)).map_or(&[], Vec::as_slice)
}

/// The lists, each call of TRL with what is shared.
fn by_call(
    lists: &'static BTreeMap<String, BTreeMap<String, Vec<String>>>,
) -> BTreeMap<String, ByCall> {
    let whole = |library: &str, call: &str, calls: &'static BTreeMap<String, Vec<String>>| {
        let is_config = library == "trl" && call.ends_with("Config") && call != "ModelConfig";
        let shared: &[&str] = if is_config { &TRL_SHARED } else { &[] };
        let parsed: &[&str] = if is_config { &TRL_PARSED } else { &[] };
        let all = std::iter::once(&call).chain(shared).chain(parsed);
        let mut fields: Vec<&'static str> =
            all.filter_map(|call| calls.get(*call)).flatten().map(String::as_str).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    };
    let calls = |library: &str, calls: &'static BTreeMap<String, Vec<String>>| {
        calls.keys().map(|call| (call.clone(), whole(library, call, calls))).collect()
    };
    lists.iter().map(|(library, all)| (library.clone(), calls(library, all))).collect()
}

/// The default of a field; `None` where it has none, or none that is known.
pub fn default(library: Library, call: Option<&str>, field: &str) -> Option<&'static Json> {
    let calls = table().defaults.get(key(library)?)?;
    let own = call.and_then(|call| calls.get(call)).and_then(|fields| fields.get(field));
    let shared = || match (library, call) {
        (Library::Trl, Some(_)) => calls.get("TrainingArguments")?.get(field),
        _ => calls.get(ANY)?.get(field),
    };
    own.or_else(shared)
}

/// A text as the number, truth value or nothing that it looks like, else as a text.
pub(super) fn scalar(text: &str) -> Json {
    let number = |x: f64| serde_json::Number::from_f64(x).map(Json::Number);
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    match text {
        "true" | "True" | "TRUE" => Json::Bool(true),
        "false" | "False" | "FALSE" => Json::Bool(false),
        "null" | "~" => Json::Null,
        _ if !is_number => Json::String(text.to_owned()),
        _ => {
            let whole = text.strip_prefix('+').unwrap_or(text).parse::<i64>().ok().map(Json::from);
            whole
                .or_else(|| text.replace('_', "").parse().ok().and_then(number))
                .unwrap_or_else(|| Json::String(text.to_owned()))
        }
    }
}

/// What is known of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    /// It is this.
    Is(Value),
    /// It is not set, and has no default.
    Unset,
    /// It may be anything.
    Unknown,
}

impl Settings {
    /// A field as it is set, or its default where all was read; `None` where it is unknown.
    pub fn field(&self, name: &str) -> Option<Value> {
        match self.look_up(name) {
            Known::Is(value) => Some(value),
            Known::Unset | Known::Unknown => None,
        }
    }

    /// What is known of a field.
    pub(super) fn look_up(&self, name: &str) -> Known {
        // What holds a field may itself be set to what could not be read.
        let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
        if !self.unread.is_empty()
            && ends.into_iter().any(|end| self.unread.contains_key(&name[..end]))
        {
            return Known::Unknown;
        }
        if let Some(value) = self.fields.get(name) {
            return Known::Is(value.clone());
        }
        if !self.is_complete {
            return Known::Unknown;
        }
        let of_call = |library| default(library, self.call.as_deref(), name);
        match self.library.and_then(of_call) {
            Some(json) => Known::Is(Value { json: json.clone(), origin: Origin::Default }),
            None => Known::Unset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_that_a_setting_comes_from_is_known() {
        let slime_has_no_list = |library| library != Library::Slime;
        for library in Library::ALL.into_iter().filter(|one| slime_has_no_list(*one)) {
            let known: Vec<_> = key(library)
                .and_then(|key| table().known.get(key))
                .map_or(Vec::new(), |calls| calls.values().flatten().collect());
            for (id, source) in sources(library) {
                let Source::First(products) = source else { continue };
                let fields =
                    products.iter().flat_map(|one| one.factors.iter().chain(&one.divisors));
                for field in fields.filter(|field| !ELSEWHERE.contains(&&***field)) {
                    assert!(known.contains(&field), "{library:?} {id}: {field}");
                }
            }
        }
    }

    /// Fields of commands whose lists the table does not have.
    const ELSEWHERE: [&str; 5] =
        ["adam.lr", "max_norm", "model.beta", "data.dataset", "prompt_max_len"];

    #[test]
    fn every_default_is_one_of_a_known_field() {
        for (library, calls) in &table().defaults {
            let Some(known) = table().known.get(library) else { continue };
            let known: Vec<_> = known.values().flatten().collect();
            let fields = calls.values().flat_map(BTreeMap::keys);
            for field in fields.filter(|field| !ELSEWHERE.contains(&&***field)) {
                assert!(known.contains(&field), "{library}: {field}");
            }
        }
    }

    #[test]
    fn a_call_knows_what_is_shared_and_older_versions_knew_more() {
        let known = known(Library::Trl, Some("GRPOConfig"));
        for field in ["num_generations", "per_device_train_batch_size", "use_peft"] {
            assert!(known.contains(&field), "{field}");
        }
        assert!(!known.contains(&"max_prompt_length"));
        assert!(removed(Library::Trl, Some("GRPOConfig")).contains(&"max_prompt_length"));
        assert!(removed(Library::Trl, Some("GRPOConfig")).contains(&"evaluation_strategy"));
        assert!(super::known(Library::NemoRl, None).contains(&"grpo.num_prompts_per_step"));
        assert!(super::known(Library::Verl, None).is_empty());
        assert!(super::known(Library::Slime, Some("train.py")).is_empty());
        for library in Library::ALL {
            for call in [None, Some("GRPOConfig"), Some("verl.trainer.main_ppo")] {
                let known = super::known(library, call);
                assert!(removed(library, call).iter().all(|field| !known.contains(field)));
            }
        }
    }

    #[test]
    fn texts_are_the_numbers_that_they_look_like() {
        for (text, json) in [
            ("8", Json::from(8)),
            ("-1", Json::from(-1)),
            ("1e-6", Json::from(1e-6)),
            ("5.0", Json::from(5.0)),
            (".5", Json::from(0.5)),
            ("1_000", Json::from(1000.0)),
            ("True", Json::from(true)),
            ("null", Json::Null),
            ("None", Json::from("None")),
            ("inf", Json::from("inf")),
            ("-", Json::from("-")),
            ("1e999", Json::from("1e999")),
            ("", Json::from("")),
        ] {
            assert_eq!(scalar(text), json, "{text}");
        }
    }
}
