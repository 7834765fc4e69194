//! Which library a configuration is for, and which call of it takes the fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::layer::{Field, Layer};
use crate::settings::{Library, fields};

/// Calls of TRL that are told apart by their fields.
const TRL_CALLS: [&str; 5] = ["GRPOConfig", "RLOOConfig", "DPOConfig", "KTOConfig", "PPOConfig"];

/// Fields that only TRL's supervised trainer takes.
const TRL_SUPERVISED: [&str; 5] =
    ["packing", "assistant_only_loss", "completion_only_loss", "dataset_text_field", "eos_token"];

/// What configurations of TRL's have, and hardly any others.
const TRL_MARKS: [&str; 20] = [
    "beta",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "learning_rate",
    "logging_steps",
    "loss_type",
    "lr_scheduler_type",
    "max_completion_length",
    "max_steps",
    "model_name_or_path",
    "num_generations",
    "num_train_epochs",
    "output_dir",
    "per_device_eval_batch_size",
    "per_device_train_batch_size",
    "reward_weights",
    "save_steps",
    "save_strategy",
    "scale_rewards",
    "vllm_mode",
];

/// What slime alone calls so.
const SLIME_MARKS: [&str; 6] = [
    "rollout-max-response-len",
    "num-rollout",
    "rollout-function-path",
    "hf-checkpoint",
    "ref-load",
    "eps-clip-high",
];

/// What others call so too.
const SLIME_FIELDS: [&str; 5] = [
    "n-samples-per-prompt",
    "rollout-batch-size",
    "global-batch-size",
    "advantage-estimator",
    "prompt-data",
];

/// Files of verl's own that configurations are built on.
pub(super) fn is_verl_base(file: &str) -> bool {
    const FILES: [&str; 4] =
        ["ppo_trainer", "ppo_megatron_trainer", "ppo_veomni_trainer", "legacy_data"];
    const FOLDERS: [&str; 12] = [
        "actor/",
        "critic/",
        "data/",
        "model/",
        "ref/",
        "rollout/",
        "reward/",
        "reward_model/",
        "algorithm/",
        "optim/",
        "engine/",
        "profiler/",
    ];
    FILES.contains(&file) || FOLDERS.iter().any(|folder| file.starts_with(folder))
}

/// Finds out the library, where nothing has said it yet, and names the fields as it does.
pub(super) fn library(layer: &mut Layer) {
    if layer.library.is_none() {
        layer.library = of(&layer.fields);
    }
    match layer.library {
        Some(Library::Trl) => trl(layer),
        Some(Library::Slime) => rename(&mut layer.fields, '_', '-'),
        _ => {}
    }
}

fn of(fields: &[Field]) -> Option<Library> {
    let tops: BTreeSet<&str> =
        fields.iter().map(|field| field.name.split('.').next().unwrap_or("")).collect();
    let has = |names: &[&str]| names.iter().filter(|name| tops.contains(**name)).count();
    if has(&["actor_rollout_ref"]) > 0 || has(&["algorithm", "data", "trainer", "critic"]) > 1 {
        return Some(Library::Verl);
    }
    if has(&["policy"]) == 1 && has(&["grpo", "dpo", "ppo", "loss_fn", "cluster", "sft", "rm"]) > 0
        || has(&["grpo", "loss_fn"]) > 0
    {
        return Some(Library::NemoRl);
    }
    if has(&["algo", "rollout", "ckpt", "ds", "vllm", "actor"]) > 2 {
        return Some(Library::OpenRlhf);
    }
    if is_slime(tops.iter().copied()) {
        return Some(Library::Slime);
    }
    is_trl(tops.iter().copied()).then_some(Library::Trl)
}

/// Whether these are names of slime's arguments.
pub(super) fn is_slime<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let (mut marks, mut fields) = (0, 0);
    for name in names {
        let name = &*name.replace('_', "-");
        marks += usize::from(SLIME_MARKS.contains(&name));
        fields += usize::from(SLIME_FIELDS.contains(&name));
    }
    marks > 0 && marks + fields > 1
}

/// Whether these are names of fields that TRL's trainers take.
pub(super) fn is_trl<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let is_mark = |name: &&str| {
        let name = &*name.replace('-', "_");
        TRL_MARKS.contains(&name) || TRL_SUPERVISED.contains(&name)
    };
    names.filter(is_mark).count() > 1
}

fn rename(fields: &mut [Field], from: char, to: char) {
    let to = to.to_string();
    fields.iter_mut().for_each(|field| field.name = field.name.replace(from, &to));
}

/// TRL's fields have no dots: a mapping is a value.
fn trl(layer: &mut Layer) {
    let mut flat: Vec<Field> = Vec::new();
    for field in std::mem::take(&mut layer.fields) {
        match field.name.split_once('.') {
            None => flat.push(field),
            Some((top, rest)) => put_inside(&mut flat, top, rest, &field),
        }
    }
    layer.fields = flat;
    let has = |name: &str| layer.fields.iter().any(|field| field.name == name);
    let is_rl = has("num_generations") || has("beta");
    layer.is_supervised |= !is_rl && TRL_SUPERVISED.iter().any(|name| has(name));
    if layer.call.is_none() && !layer.is_supervised {
        layer.call = trl_call(layer).map(str::to_owned);
    }
}

fn put_inside(flat: &mut Vec<Field>, top: &str, rest: &str, field: &Field) {
    let json = field.json.clone().unwrap_or(Json::Null);
    let last = flat.iter_mut().rev().find(|one| one.name == top);
    if let Some(Some(Json::Object(map))) = last.map(|one| one.json.as_mut()) {
        map.insert(rest.to_owned(), json);
        return;
    }
    let map: Map<String, Json> = [(rest.to_owned(), json)].into_iter().collect();
    flat.push(Field { name: top.to_owned(), json: Some(Json::Object(map)), ..field.clone() });
}

/// The call that alone knows some of the fields; else the one that the file or the folder of the
/// output is named after, if it may be.
fn trl_call(layer: &Layer) -> Option<&'static str> {
    let knows = |call: &str, name: &str| fields::known(Library::Trl, Some(call)).contains(&name);
    let mut alone: BTreeSet<&'static str> = BTreeSet::new();
    let mut may_be: BTreeSet<&'static str> = TRL_CALLS.into_iter().collect();
    for field in &layer.fields {
        let takers: Vec<&'static str> =
            TRL_CALLS.into_iter().filter(|call| knows(call, &field.name)).collect();
        if let [one] = takers[..] {
            alone.insert(one);
        }
        if !takers.is_empty() {
            may_be.retain(|call| takers.contains(call));
        }
    }
    if alone.len() == 1 {
        return alone.pop_first();
    }
    let named = |call: &&&str| {
        let word = call.trim_end_matches("Config").to_lowercase();
        let in_text = |text: &str| text.to_lowercase().contains(&word);
        let in_files = layer.files.iter().filter_map(|file| file.file_stem());
        in_files.into_iter().any(|stem| in_text(&stem.to_string_lossy()))
            || layer.fields.iter().any(|field| {
                let is_name = matches!(&*field.name, "output_dir" | "run_name");
                is_name && field.json.as_ref().and_then(Json::as_str).is_some_and(in_text)
            })
    };
    let by_name: Vec<&&str> = may_be.iter().filter(named).collect();
    match by_name[..] {
        [one] => Some(one),
        _ if may_be.len() == 1 => may_be.pop_first(),
        _ => None,
    }
}

/// Whether the run learns from given texts: from no reward and no preference.
pub(super) fn is_supervised(
    library: Library,
    fields: &std::collections::BTreeMap<String, crate::settings::Value>,
) -> bool {
    let is_on = |name: &str| fields.get(name).is_some_and(|one| one.json == Json::Bool(true));
    let is = |name: &str, word: &str| fields.get(name).is_some_and(|one| one.json == word);
    let has = |section: &str| {
        fields.range(section.to_owned()..).next().is_some_and(|(name, _)| name.starts_with(section))
    };
    match library {
        Library::Verl => {
            let is_sft = has("trainer.") && !has("actor_rollout_ref.") && !has("algorithm.");
            is_on("distillation.enabled") || is_sft && (has("model.") || has("optim."))
        }
        Library::Slime => is("loss-type", "sft_loss"),
        Library::NemoRl => {
            let learns_from_texts = has("sft.") || has("distillation.") || has("rm.");
            let is_rl = has("grpo.") || has("ppo.") || has("dpo.");
            learns_from_texts && !is_rl || is_on("on_policy_distillation.enabled")
        }
        _ => false,
    }
}
