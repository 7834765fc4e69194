//! Which library a configuration is for, and which call of it takes the fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::layer::{Field, How, Layer};
use super::others::{self, Other};
use crate::settings::{Library, fields};

/// Calls of TRL that are told apart by their fields.
const TRL_CALLS: [&str; 5] = ["GRPOConfig", "RLOOConfig", "DPOConfig", "KTOConfig", "PPOConfig"];

/// Fields of supervised trainers, of TRL's and of others.
const SUPERVISED: [&str; 5] =
    ["packing", "assistant_only_loss", "completion_only_loss", "dataset_text_field", "eos_token"];

/// What TRL alone calls so.
const TRL_MARKS: [&str; 27] = [
    "assistant_only_loss",
    "completion_only_loss",
    "dataset_num_proc",
    "dataset_text_field",
    "desirable_weight",
    "epsilon_high",
    "f_divergence_type",
    "generation_batch_size",
    "importance_sampling_level",
    "log_completions",
    "mask_truncated_completions",
    "max_completion_length",
    "missing_eos_penalty",
    "normalize_advantages",
    "num_generations",
    "num_ppo_epochs",
    "num_sample_generations",
    "precompute_ref_log_probs",
    "reward_funcs",
    "reward_weights",
    "rpo_alpha",
    "scale_rewards",
    "steps_per_generation",
    "sync_ref_model",
    "undesirable_weight",
    "vllm_importance_sampling_correction",
    "vllm_mode",
];

/// What TRL and many others call so.
const GENERAL: [&str; 18] = [
    "beta",
    "cliprange",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "group_size",
    "learning_rate",
    "logging_steps",
    "loss_type",
    "lr_scheduler_type",
    "max_steps",
    "model_name_or_path",
    "num_train_epochs",
    "output_dir",
    "per_device_eval_batch_size",
    "per_device_train_batch_size",
    "rollout_batch_size",
    "save_steps",
    "save_strategy",
];

/// Fields, and mappings that hold some, of one library alone. One of them is enough.
const MARKS: [(Library, &[&str]); 3] = [
    (
        Library::Verl,
        &[
            "actor_rollout_ref",
            "algorithm.adv_estimator",
            "algorithm.use_kl_in_reward",
            "data.gen_batch_size",
            "model.partial_pretrain",
            "trainer.default_local_dir",
        ],
    ),
    (
        Library::NemoRl,
        &[
            "grpo.num_prompts_per_step",
            "grpo.num_generations_per_prompt",
            "grpo.max_num_steps",
            "grpo.async_grpo",
            "ppo.num_prompts_per_step",
            "ppo.num_generations_per_prompt",
            "dpo.reference_policy_kl_penalty",
            "dpo.max_num_steps",
            "sft.max_num_steps",
            "rm.max_num_steps",
            "distillation.num_prompts_per_step",
            "loss_fn.ratio_clip_min",
            "loss_fn.ratio_clip_max",
            "loss_fn.reference_policy_kl_penalty",
            "policy.train_global_batch_size",
            "policy.max_total_sequence_length",
            "policy.dtensor_cfg",
            "policy.megatron_cfg",
        ],
    ),
    (
        Library::OpenRlhf,
        &["algo.advantage", "algo.kl", "ds.zero_stage", "ds.lora", "rollout.n_samples_per_prompt"],
    ),
];

/// What slime alone calls so.
const SLIME_MARKS: [&str; 5] = [
    "rollout-max-response-len",
    "num-rollout",
    "rollout-function-path",
    "hf-checkpoint",
    "ref-load",
];

/// What others call so too.
const SLIME_FIELDS: [&str; 5] = [
    "n-samples-per-prompt",
    "rollout-batch-size",
    "global-batch-size",
    "advantage-estimator",
    "prompt-data",
];

/// Configurations of verl's own that others are built on.
const VERL_TRAINERS: [&str; 3] = ["ppo_trainer", "ppo_megatron_trainer", "ppo_veomni_trainer"];

/// Whether a file is one of verl's trainers.
pub(super) fn is_verl_trainer(file: &str) -> bool {
    VERL_TRAINERS.contains(&file)
}

/// Files of verl's own that configurations are built on.
pub(super) fn is_verl_base(file: &str) -> bool {
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
    is_verl_trainer(file)
        || file == "legacy_data"
        || FOLDERS.iter().any(|folder| file.starts_with(folder))
}

/// Finds out the library, where nothing has said it yet, and names the fields as it does.
pub(super) fn library(layer: &mut Layer) {
    if layer.library.is_none() && layer.other.is_none() {
        layer.other = others::of(names(&layer.fields));
        layer.library = match layer.other {
            Some(other) => other.fork_of,
            None => of(&layer.fields),
        };
        // Others have such sections too, so that verl's defaults are not known.
        layer.is_partial |= layer.library == Some(Library::Verl)
            && !layer.fields.iter().any(|field| others::is_in(&field.name, "actor_rollout_ref"));
    }
    match layer.library {
        Some(Library::Trl) => trl(layer),
        Some(Library::Slime) => rename(&mut layer.fields, '_', '-'),
        Some(_) => {}
        None => layer.is_supervised |= is_supervised_by_name(&layer.fields),
    }
}

fn of(fields: &[Field]) -> Option<Library> {
    let has = |mark: &&str| fields.iter().any(|field| others::is_in(&field.name, mark));
    if let Some((library, _)) = MARKS.iter().find(|(_, marks)| marks.iter().any(has)) {
        return Some(*library);
    }
    let tops = || fields.iter().map(top);
    if is_slime(tops()) {
        return Some(Library::Slime);
    }
    is_trl(tops()).then_some(Library::Trl)
}

/// Whether these are names of NeMo-RL's fields.
pub(super) fn is_nemo(fields: &[Field]) -> bool {
    of(fields) == Some(Library::NemoRl)
}

fn names(fields: &[Field]) -> impl Iterator<Item = &str> + Clone {
    fields.iter().map(|field| &*field.name)
}

fn top(field: &Field) -> &str {
    field.name.split('.').next().unwrap_or("")
}

/// A library that takes the fields of one that is known, but has others and other defaults.
pub(super) fn fork(
    library: Option<Library>,
    call: Option<&str>,
    fields: &[Field],
) -> Option<Other> {
    let other = others::of(names(fields)).filter(|other| {
        let fork_of = other.fork_of;
        fork_of.is_none() || fork_of == library
    });
    if other.is_some() || library != Some(Library::Verl) {
        return other;
    }
    // Other configurations of verl's have fields that are not listed.
    if call != Some("verl.trainer.main_ppo") {
        return None;
    }
    let known = [fields::known(Library::Verl, call), fields::removed(Library::Verl, call)].concat();
    let is_known =
        |name: &str| known.iter().any(|one| others::is_in(name, one) || others::is_in(one, name));
    let strange = fields.iter().filter(|field| field.how == How::Set && !is_known(&field.name));
    let names: BTreeSet<&str> = strange.map(|field| &*field.name).collect();
    (names.len() >= FOREIGN).then_some(others::FORK_OF_VERL)
}

/// Whether a call of a library takes at least half of these fields.
pub(super) fn takes(library: Option<Library>, call: &str, fields: &[Field]) -> bool {
    let of = |list: fn(Library, Option<&str>) -> &'static [&'static str]| {
        library.map_or(&[][..], |library| list(library, Some(call)))
    };
    let known = [of(fields::known), of(fields::removed)].concat();
    let is_known = |field: &&Field| {
        known.iter().any(|one| others::is_in(&field.name, one) || others::is_in(one, &field.name))
    };
    2 * fields.iter().filter(is_known).count() >= fields.len()
}

/// So many fields that verl never had are no misspelt ones.
const FOREIGN: usize = 3;

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

/// Whether TRL's trainers take these fields, and one of them is TRL's alone.
pub(super) fn is_trl<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let names: Vec<String> = names.map(plain).collect();
    let is_own = |name: &String| TRL_MARKS.contains(&&**name);
    names.iter().any(is_own)
        && names.iter().filter(|name| is_own(name) || is_shared(name)).count() > 1
}

/// Whether these are names that configurations of training have, of whatever library.
pub(super) fn is_general<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    names.map(plain).filter(|name| TRL_MARKS.contains(&&**name) || is_shared(name)).count() > 1
}

/// The same of fields, wherever they are.
pub(super) fn is_training(fields: &[Field]) -> bool {
    let last = |field: &Field| field.name.rsplit('.').next().unwrap_or("").to_owned();
    let names: BTreeSet<String> = fields.iter().map(last).collect();
    is_general(names.iter().map(String::as_str))
}

fn is_shared(name: &str) -> bool {
    GENERAL.contains(&name) || SUPERVISED.contains(&name)
}

fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether fields are those of a supervised trainer, and none is of another one.
fn is_supervised_by_name(fields: &[Field]) -> bool {
    let has = |name: &str| fields.iter().any(|field| field.name == name);
    let is_rl = ["num_generations", "beta", "group_size"].into_iter().any(has);
    !is_rl && SUPERVISED.into_iter().any(has)
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
    layer.is_supervised |= is_supervised_by_name(&layer.fields);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mark_of_a_library_is_a_field_of_another_one() {
        let calls = [None, Some("verl.trainer.main_ppo"), Some("openrlhf.cli.train_ppo_ray")];
        let of_trl = TRL_CALLS.into_iter().map(Some);
        let calls: Vec<Option<&str>> = calls.into_iter().chain(of_trl).collect();
        let known = |library| -> BTreeSet<&str> {
            let of = |call: &Option<&str>| fields::known(library, *call).iter().copied();
            calls.iter().flat_map(of).collect()
        };
        let trl = [(Library::Trl, &TRL_MARKS[..]), (Library::Slime, &SLIME_MARKS[..])];
        for (library, marks) in MARKS.into_iter().chain(trl) {
            for other in Library::ALL.into_iter().filter(|other| *other != library) {
                let known = known(other);
                let shared = marks.iter().find(|it| known.iter().any(|one| others::is_in(one, it)));
                assert_eq!(shared, None, "{library:?} and {other:?}");
            }
        }
        // Each is one of its own library, where its fields are listed.
        for (library, marks) in
            MARKS.into_iter().filter(|(library, _)| *library == Library::OpenRlhf)
        {
            let known = known(library);
            let own = |it: &&str| known.iter().any(|one| others::is_in(one, it));
            assert!(marks.iter().all(own), "{library:?}");
        }
    }
}
