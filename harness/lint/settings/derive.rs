//! Settings from fields: products of them, the first that is set, and what takes more than that.

use serde_json::Value as Json;

use super::fields::{self, Known, Product, Source};
use super::{Library, Origin, Settings, Value};

/// The field that stands for the number of processes of the launcher.
pub(super) const PROCESSES: &str = "processes";

/// Fills in all settings that follow from the fields.
pub(super) fn fill(settings: &mut Settings) {
    let Some(library) = settings.library else { return };
    for (id, source) in fields::sources(library) {
        if let Some(value) = of(settings, &source) {
            settings.values.insert(id.to_owned(), value);
        }
    }
}

fn of(settings: &Settings, source: &Source) -> Option<Value> {
    match source {
        Source::Always(json) => Some(by_default(json.clone())),
        Source::First(products) => first(settings, products),
        Source::Rule(name) => rule(settings, name),
    }
}

fn by_default(json: impl Into<Json>) -> Value {
    Value { json: json.into(), origin: Origin::Default }
}

/// The first of several that is set and not null, else the null of the last one that is set.
fn first(settings: &Settings, products: &[Product]) -> Option<Value> {
    let mut null = None;
    for product in products {
        match (&product.factors[..], &product.divisors[..]) {
            ([field], []) => match settings.look_up(field) {
                Known::Is(value) if value.json.is_null() => null = Some(value),
                Known::Is(value) => return Some(value),
                Known::Unset => {}
                Known::Unknown => return None,
            },
            _ => return quotient(settings, product),
        }
    }
    null
}

/// A product of fields, divided by others. Where one factor is 0 the others do not matter.
fn quotient(settings: &Settings, product: &Product) -> Option<Value> {
    let read = |field: &String| settings.field(field);
    let factors: Vec<Option<Value>> = product.factors.iter().map(read).collect();
    let zero = factors.iter().flatten().find(|value| number(value) == Some(0.0));
    if let Some(zero) = zero {
        return Some(Value { json: Json::from(0), origin: zero.origin.clone() });
    }
    let divisors: Vec<Option<Value>> = product.divisors.iter().map(read).collect();
    let all: Option<Vec<Value>> = factors.into_iter().chain(divisors).collect();
    let all = all?;
    let mut x = 1.0;
    for (at, value) in all.iter().enumerate() {
        let part = number(value)?;
        x = if at < product.factors.len() { x * part } else { x / part };
    }
    // The weight, rather than the switch in front of it.
    let (switches, mut weights): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|value| value.json.is_boolean());
    weights.extend(switches);
    Some(Value { json: number_json(x)?, origin: origin(&weights) })
}

/// The origin of what follows from several: the first that stands in a file.
fn origin(values: &[Value]) -> Origin {
    let is_in_a_file = |value: &&Value| matches!(value.origin, Origin::Line(_));
    let is_given = |value: &&Value| value.origin != Origin::Default;
    let one = values.iter().find(is_in_a_file).or_else(|| values.iter().find(is_given));
    one.map_or(Origin::Default, |value| value.origin.clone())
}

/// A number, where true is 1 and false is 0.
fn number(value: &Value) -> Option<f64> {
    match &value.json {
        Json::Bool(on) => Some(f64::from(u8::from(*on))),
        Json::String(text) => fields::scalar(text).as_f64(),
        json => json.as_f64(),
    }
}

/// A whole number as such.
fn number_json(x: f64) -> Option<Json> {
    let whole = x as i64;
    if x.fract() == 0.0 && x.abs() < 9e15 {
        return Some(Json::from(whole));
    }
    serde_json::Number::from_f64(x).map(Json::Number)
}

/// What each rule of the table says.
fn rule(settings: &Settings, name: &str) -> Option<Value> {
    let s = settings;
    match name {
        "trl-algorithm" => trl_algorithm(s),
        "trl-prompts" => trl_prompts(s),
        "trl-update" => trl_update(s),
        "trl-lora" => trl_lora(s),
        "trl-kl-loss" => if_call(s, &["GRPOConfig", "DPOConfig", "KTOConfig"], "beta"),
        "trl-kl-reward" => {
            if_call(s, &["RLOOConfig"], "beta").or_else(|| if_call(s, &["PPOConfig"], "kl_coef"))
        }
        "trl-kl-estimator" => match s.call.as_deref()? {
            "GRPOConfig" => Some(by_default("k3")),
            "PPOConfig" => s.field("kl_estimator"),
            _ => None,
        },
        "trl-aggregate" => if_call(s, &["GRPOConfig"], "loss_type").and_then(trl_aggregate),
        "trl-scale" => trl_scale(s),
        "trl-save" => trl_save(s),
        "trl-processes" => trl_processes(s),
        "verl-lora" => verl_lora(s),
        "verl-kl-estimator" => verl_kl_estimator(s),
        "verl-ratio-level" => {
            level_if(s.field("actor_rollout_ref.actor.policy_loss.loss_mode")?, &["gspo"])
        }
        "verl-scale" => verl_scale(s),
        "verl-correction" => s.field("algorithm.rollout_correction.rollout_is").map(is_set),
        "verl-per-gpu" => verl_per_gpu(s),
        "openrlhf-lora" => {
            let rank = s.field("ds.lora.rank")?;
            Some(Value { json: Json::Bool(is_on(&rank)?), ..rank })
        }
        "openrlhf-algorithm" => openrlhf_algorithm(s),
        "openrlhf-kl-loss" => openrlhf_kl(s, true),
        "openrlhf-kl-reward" => openrlhf_kl(s, false),
        "openrlhf-clip-low" => openrlhf_clip(s, 0),
        "openrlhf-clip-high" => openrlhf_clip(s, 1),
        "openrlhf-ratio-level" => level_if(s.field("actor.policy_loss_type")?, &["gspo"]),
        "openrlhf-scale" => openrlhf_scale(s),
        "openrlhf-per-gpu" => {
            if_on(s, "train.dynamic_batch_enable", || s.field("train.max_tokens_per_gpu"))
        }
        "nemo-algorithm" => nemo_algorithm(s),
        "nemo-lr" => {
            nemo_backend(s, "policy.megatron_cfg.optimizer.lr", "policy.optimizer.kwargs.lr")
        }
        "nemo-lora" => nemo_lora(s),
        "nemo-passes" => match s.look_up("ppo.ppo_epochs") {
            Known::Is(value) => Some(value),
            Known::Unset => Some(by_default(1)),
            Known::Unknown => None,
        },
        "nemo-data-train" => nemo_data(s, "train"),
        "nemo-data-eval" => nemo_data(s, "validation"),
        "nemo-kl-loss" => nemo_kl(s, false),
        "nemo-kl-reward" => nemo_kl(s, true),
        "nemo-ratio-level" => {
            let value = s.field("loss_fn.sequence_level_importance_ratios")?;
            named(value, "sequence", "token")
        }
        "nemo-loss-kind" => named(s.field("loss_fn.use_cispo")?, "cispo", "ppo"),
        "nemo-aggregate" => named(s.field("loss_fn.token_level_loss")?, PER_TOKEN, PER_ROW),
        "nemo-scale" => nemo_scale(s),
        "nemo-gradient-clip" => {
            nemo_backend(s, "policy.megatron_cfg.optimizer.clip_grad", "policy.max_grad_norm")
        }
        "nemo-save" => if_on(s, "checkpointing.enabled", || s.field("checkpointing.save_period"))
            .or_else(|| off(s, "checkpointing.enabled")),
        "slime-update" => slime_update(s),
        "slime-data-eval" => s.field("eval-prompt-data").map(without_names),
        "slime-kl-estimator" => Some(estimator(s.field("kl-loss-type")?)),
        "slime-ratio-level" => level_if(s.field("advantage-estimator")?, &["gspo"]),
        "slime-aggregate" => named(s.field("calculate-per-token-loss")?, PER_TOKEN, PER_ROW),
        "slime-scale" => slime_scale(s),
        "slime-per-gpu" => if_on(s, "use-dynamic-batch-size", || {
            product(s, &["max-tokens-per-gpu", "context-parallel-size"])
        }),
        "slime-dropout" => slime_dropout(s),
        "asynchronous-module" => asynchronous(s),
        _ => None,
    }
}

const PER_TOKEN: &str = "token-mean";
const PER_ROW: &str = "seq-mean-token-mean";

fn product(settings: &Settings, fields: &[&str]) -> Option<Value> {
    let factors = fields.iter().map(|field| (*field).to_owned()).collect();
    quotient(settings, &Product { factors, divisors: Vec::new() })
}

/// A field that means this in some calls only.
fn if_call(settings: &Settings, calls: &[&str], field: &str) -> Option<Value> {
    let call = settings.call.as_deref()?;
    if calls.contains(&call) { settings.field(field) } else { None }
}

/// Whether a truth value is on.
fn is_on(value: &Value) -> Option<bool> {
    number(value).map(|x| x != 0.0)
}

/// What holds where a flag is on.
fn if_on(settings: &Settings, flag: &str, then: impl FnOnce() -> Option<Value>) -> Option<Value> {
    if is_on(&settings.field(flag)?)? { then() } else { None }
}

/// 0 where a flag is off.
fn off(settings: &Settings, flag: &str) -> Option<Value> {
    let value = settings.field(flag)?;
    if is_on(&value)? { None } else { Some(Value { json: Json::from(0), ..value }) }
}

/// One word where a truth value is on, another one where it is off.
fn named(value: Value, on: &str, off: &str) -> Option<Value> {
    let word = if is_on(&value)? { on } else { off };
    Some(Value { json: Json::from(word), ..value })
}

/// `sequence` for some names, `token` for all others.
fn level_if(value: Value, sequence: &[&str]) -> Option<Value> {
    let name = value.json.as_str()?;
    let level = if sequence.contains(&name) { "sequence" } else { "token" };
    Some(Value { json: Json::from(level), ..value })
}

/// The estimators of the KL have several names.
fn estimator(value: Value) -> Value {
    let name = match value.json.as_str() {
        Some("kl") => "k1",
        Some("mse") => "k2",
        Some("low_var_kl") => "k3",
        Some(other) => other,
        None => return value,
    };
    Value { json: Json::from(name), ..value }
}

/// Whether something has a value at all: null, false and `none` are none.
fn is_set(value: Value) -> Value {
    let is_none = match &value.json {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => ["none", "null", ""].contains(&&*text.to_lowercase()),
        _ => false,
    };
    Value { json: Json::Bool(!is_none), ..value }
}

fn trl_algorithm(settings: &Settings) -> Option<Value> {
    let name = match settings.call.as_deref()? {
        "GRPOConfig" => "grpo",
        "RLOOConfig" => "rloo",
        "PPOConfig" => "gae",
        "DPOConfig" => "dpo",
        "KTOConfig" => "kto",
        _ => return None,
    };
    Some(by_default(name))
}

/// Completions of one update.
fn trl_update(settings: &Settings) -> Option<Value> {
    let fields = ["per_device_train_batch_size", PROCESSES, "gradient_accumulation_steps"];
    product(settings, &fields)
}

/// Completions of one batch of rollouts: as set, else those of as many micro batches as one update
/// or as many as are set.
fn trl_generation(settings: &Settings) -> Option<Value> {
    let set = settings.field("generation_batch_size")?;
    if !set.json.is_null() {
        return Some(set);
    }
    let steps = settings.field("steps_per_generation")?;
    if steps.json.is_null() {
        return trl_update(settings);
    }
    product(settings, &["per_device_train_batch_size", PROCESSES, "steps_per_generation"])
}

fn trl_prompts(settings: &Settings) -> Option<Value> {
    let (batch, group) = (trl_generation(settings)?, settings.field("num_generations")?);
    let prompts = number(&batch)? / number(&group).filter(|group| *group > 0.0)?;
    Some(Value { json: number_json(prompts)?, origin: origin(&[batch, group]) })
}

/// The processes of the launcher; where the library has filled in all batch sizes, what is left.
fn trl_processes(settings: &Settings) -> Option<Value> {
    if let Some(given) = settings.field(PROCESSES) {
        return Some(given);
    }
    if !settings.is_resolved {
        return None;
    }
    let fields = ["generation_batch_size", "per_device_train_batch_size", "steps_per_generation"];
    let [batch, rows, steps] = fields.map(|field| settings.field(field));
    let (batch, rows, steps) = (batch?, rows?, steps?);
    let processes = number(&batch)? / number(&rows)? / number(&steps)?;
    let origin = origin(&[batch]);
    Some(Value { json: number_json(processes)?, origin })
}

/// Adapters, by the trainer's argument or the flags of the command. A dictionary of the trainer's
/// configuration does not tell that there are none.
fn trl_lora(settings: &Settings) -> Option<Value> {
    let fields = ["peft_config", "use_peft", "load_in_4bit", "load_in_8bit"];
    let is_given = |field: &&&str| {
        settings.fields.contains_key(**field) || settings.unread.contains_key(**field)
    };
    let given: Vec<Option<Value>> =
        fields.iter().filter(is_given).map(|field| settings.field(field)).collect();
    let on = |value: &&Value| !value.json.is_null() && is_on(value) != Some(false);
    if let Some(value) = given.iter().flatten().find(on) {
        return Some(Value { json: Json::Bool(true), ..value.clone() });
    }
    let all: Vec<Value> = given.into_iter().collect::<Option<_>>()?;
    if let Some(value) = all.first() {
        return Some(Value { json: Json::Bool(false), ..value.clone() });
    }
    // A trainer is built, or a model is named to the command, without a word of adapters.
    let tells = ["reward_funcs", "train_dataset", "model_name_or_path"];
    let tells = tells.iter().any(|field| settings.fields.contains_key(*field));
    (settings.is_complete && tells && !settings.is_resolved).then(|| by_default(false))
}

/// How token losses become one number, in verl's words.
fn trl_aggregate(value: Value) -> Option<Value> {
    let word = match value.json.as_str()? {
        "grpo" | "sapo" => PER_ROW,
        "bnpo" | "dapo" | "cispo" | "vespo" => PER_TOKEN,
        "dr_grpo" => "seq-mean-token-sum-norm",
        _ => return None,
    };
    Some(Value { json: Json::from(word), ..value })
}

fn trl_scale(settings: &Settings) -> Option<Value> {
    match settings.call.as_deref()? {
        "GRPOConfig" => {}
        "RLOOConfig" => return named(settings.field("normalize_advantages")?, "batch", "none"),
        _ => return None,
    }
    let value = settings.field("scale_rewards")?;
    match is_on(&value) {
        Some(on) => {
            let word = if on { "group" } else { "none" };
            Some(Value { json: Json::from(word), ..value })
        }
        None => Some(value),
    }
}

/// Updates between checkpoints; 0 where none are written.
fn trl_save(settings: &Settings) -> Option<Value> {
    let strategy = settings.field("save_strategy")?;
    match strategy.json.as_str()? {
        "steps" => settings.field("save_steps"),
        "no" => Some(Value { json: Json::from(0), ..strategy }),
        _ => None,
    }
}

fn verl_lora(settings: &Settings) -> Option<Value> {
    let model = "actor_rollout_ref.model";
    let rank = settings.field(&format!("{model}.lora_rank"));
    let of_megatron = settings.fields.get(&format!("{model}.lora.rank")).cloned();
    let ranks = || rank.iter().chain(&of_megatron);
    let value = ranks().find(|value| is_on(value) == Some(true)).or(rank.as_ref())?;
    Some(Value { json: Json::Bool(is_on(value)?), origin: value.origin.clone() })
}

/// That of the loss where the KL is there, else that of the reward.
fn verl_kl_estimator(settings: &Settings) -> Option<Value> {
    let in_loss = is_on(&settings.field("actor_rollout_ref.actor.use_kl_loss")?)?;
    let in_reward = is_on(&settings.field("algorithm.use_kl_in_reward")?)?;
    let of_reward = in_reward && !in_loss;
    let field =
        if of_reward { "algorithm.kl_penalty" } else { "actor_rollout_ref.actor.kl_loss_type" };
    settings.field(field).map(estimator)
}

fn verl_scale(settings: &Settings) -> Option<Value> {
    let estimator = settings.field("algorithm.adv_estimator")?;
    let name = estimator.json.as_str()?.to_owned();
    let fixed = |word: &str| Some(Value { json: Json::from(word), ..estimator });
    match &*name {
        "grpo" => named(settings.field("algorithm.norm_adv_by_std_in_grpo")?, "group", "none"),
        "rloo" | "opo" | "remax" => fixed("none"),
        "gae" | "reinforce_plus_plus" | "reinforce_plus_plus_baseline" => fixed("batch"),
        _ => None,
    }
}

fn verl_per_gpu(settings: &Settings) -> Option<Value> {
    let actor = "actor_rollout_ref.actor";
    let field = |name: &str| format!("{actor}.{name}");
    if_on(settings, &field("use_dynamic_bsz"), || {
        let tokens = field("ppo_max_token_len_per_gpu");
        product(settings, &[&tokens, &verl_parallel(settings, actor)])
    })
}

/// The field that says on how many GPUs one sequence is: that of Megatron, where it is set; else
/// that of the engine, over which the older one of the actor counts where it is above 1.
fn verl_parallel(settings: &Settings, actor: &str) -> String {
    let [megatron, engine, older] = [
        "megatron.context_parallel_size",
        "fsdp_config.ulysses_sequence_parallel_size",
        "ulysses_sequence_parallel_size",
    ]
    .map(|field| format!("{actor}.{field}"));
    let is_set =
        |name: &String| settings.fields.contains_key(name) || settings.unread.contains_key(name);
    let is_one = settings.field(&older).is_some_and(|value| number(&value) == Some(1.0));
    match () {
        () if is_set(&megatron) => megatron,
        () if is_set(&engine) && (is_one || !is_set(&older)) => engine,
        () => older,
    }
}

/// The command says it for preferences, a flag for all others.
fn openrlhf_algorithm(settings: &Settings) -> Option<Value> {
    match settings.call.as_deref() {
        Some("openrlhf.cli.train_dpo") => Some(by_default("dpo")),
        Some("openrlhf.cli.train_kto") => Some(by_default("kto")),
        _ => settings.field("algo.advantage.estimator"),
    }
}

/// One weight, for the loss or for the reward.
fn openrlhf_kl(settings: &Settings, of_loss: bool) -> Option<Value> {
    if settings.call.as_deref() == Some("openrlhf.cli.train_dpo") {
        return if of_loss { settings.field("model.beta") } else { None };
    }
    let flag = settings.field("algo.kl.use_loss")?;
    if is_on(&flag)? == of_loss {
        return settings.field("algo.kl.init_coef");
    }
    Some(Value { json: Json::from(0), ..flag })
}

/// Both bounds may be given as a pair.
fn openrlhf_clip(settings: &Settings, at: usize) -> Option<Value> {
    let pair = settings.field("actor.eps_clip_low_high")?;
    match &pair.json {
        Json::Array(bounds) => Some(Value { json: bounds.get(at)?.clone(), origin: pair.origin }),
        Json::Null => settings.field("actor.eps_clip"),
        _ => None,
    }
}

fn openrlhf_scale(settings: &Settings) -> Option<Value> {
    let estimator = settings.field("algo.advantage.estimator")?;
    let group = estimator.json.as_str()? == "group_norm";
    let none = estimator.json.as_str()? == "dr_grpo";
    let fixed = |word: &str| Some(Value { json: Json::from(word), ..estimator });
    match (group, none) {
        (true, _) => fixed("group"),
        (_, true) => fixed("none"),
        _ => named(settings.field("algo.advantage.no_std_norm")?, "none", "batch"),
    }
}

/// The estimator of GRPO and PPO; a file for preferences has no such sections.
fn nemo_algorithm(settings: &Settings) -> Option<Value> {
    let has = |section: &str| {
        let first = settings.fields.range(section.to_owned()..).next();
        first.is_some_and(|(name, _)| name.starts_with(section))
    };
    if has("ppo.") {
        return settings.field("ppo.adv_estimator.name").or_else(|| Some(by_default("gae")));
    }
    if has("grpo.") {
        return settings.field("grpo.adv_estimator.name");
    }
    has("dpo.").then(|| by_default("dpo"))
}

/// A field of the backend that is on: Megatron, or else the other one.
fn nemo_backend(settings: &Settings, megatron: &str, other: &str) -> Option<Value> {
    let flag = "policy.megatron_cfg.enabled";
    let is_megatron = match settings.look_up(flag) {
        Known::Is(value) => is_on(&value)?,
        Known::Unset => false,
        Known::Unknown => return None,
    };
    settings.field(if is_megatron { megatron } else { other })
}

fn nemo_lora(settings: &Settings) -> Option<Value> {
    let fields = ["policy.dtensor_cfg.lora_cfg.enabled", "policy.megatron_cfg.peft.enabled"];
    let mut off = None;
    for field in fields {
        match settings.look_up(field) {
            Known::Is(value) if is_on(&value)? => return Some(value),
            Known::Is(value) => off = Some(value),
            Known::Unset => {}
            Known::Unknown => return None,
        }
    }
    off.or_else(|| settings.is_complete.then(|| by_default(false)))
}

/// A file, or a data set of the Hub with its split.
fn nemo_data(settings: &Settings, part: &str) -> Option<Value> {
    let field = |name: &str| settings.field(&format!("data.{part}.{name}"));
    if let Some(path) = field("data_path").filter(|path| !path.json.is_null()) {
        return Some(path);
    }
    let Some(name) = field("dataset_name") else { return settings.field(&format!("data.{part}")) };
    match field("split").as_ref().and_then(|split| split.json.as_str()) {
        Some(split) => {
            let json = Json::from(format!("{} ({split})", name.json.as_str()?));
            Some(Value { json, ..name })
        }
        None => Some(name),
    }
}

/// One weight, for the loss or for the reward; of preferences, that of their loss.
fn nemo_kl(settings: &Settings, of_reward: bool) -> Option<Value> {
    let of_preferences = settings.field("dpo.reference_policy_kl_penalty");
    if of_preferences.is_some() && !of_reward {
        return of_preferences;
    }
    let weight = settings.field("loss_fn.reference_policy_kl_penalty")?;
    let in_reward = match settings.look_up("loss_fn.use_kl_in_reward") {
        Known::Is(value) => is_on(&value)?,
        Known::Unset => false,
        Known::Unknown => return None,
    };
    Some(if in_reward == of_reward { weight } else { Value { json: Json::from(0), ..weight } })
}

/// In older files the estimator has no section of its own.
fn nemo_scale(settings: &Settings) -> Option<Value> {
    let fields = ["grpo.adv_estimator.normalize_rewards", "grpo.normalize_rewards"];
    let value = fields.iter().find_map(|field| settings.field(field))?;
    named(value, "group", "none")
}

/// Completions of an update: as set, or those of a batch of rollouts in so many steps.
fn slime_update(settings: &Settings) -> Option<Value> {
    let set = settings.field("global-batch-size")?;
    if !set.json.is_null() {
        return Some(set);
    }
    let steps = settings.field("num-steps-per-rollout")?;
    let [prompts, group] =
        ["rollout-batch-size", "n-samples-per-prompt"].map(|field| settings.field(field));
    let rows = number(&prompts?)? * number(&group?)?;
    let rows = rows / number(&steps).filter(|steps| *steps > 0.0)?;
    Some(Value { json: number_json(rows)?, origin: steps.origin })
}

/// The paths of pairs of names and paths.
fn without_names(value: Value) -> Value {
    match &value.json {
        Json::Array(words) if words.len() >= 2 => {
            let paths: Vec<Json> = words.iter().skip(1).step_by(2).cloned().collect();
            Value { json: Json::Array(paths), ..value }
        }
        _ => value,
    }
}

fn slime_scale(settings: &Settings) -> Option<Value> {
    let estimator = settings.field("advantage-estimator")?;
    if !["grpo", "gspo", "cispo"].contains(&estimator.json.as_str()?) {
        return None;
    }
    named(settings.field("disable-grpo-std-normalization")?, "none", "group")
}

/// The larger of the two.
fn slime_dropout(settings: &Settings) -> Option<Value> {
    let attention = settings.field("attention-dropout")?;
    let hidden = settings.field("hidden-dropout")?;
    let is_hidden = number(&hidden)? > number(&attention)?;
    Some(if is_hidden { hidden } else { attention })
}

/// The program's name says whether rollouts and updates take turns.
fn asynchronous(settings: &Settings) -> Option<Value> {
    let call = settings.call.as_deref()?;
    let words = ["async", "one_step_off"];
    let is_asynchronous = words.iter().any(|word| call.contains(word));
    let is_known = is_asynchronous
        || settings.library == Some(Library::Slime)
        || call.starts_with("verl.trainer.main_ppo");
    is_known.then(|| by_default(is_asynchronous))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_rule_of_the_table_is_here() {
        for library in Library::ALL {
            for (id, source) in fields::sources(library) {
                let Source::Rule(name) = source else { continue };
                let arm = format!("\"{name}\" =>");
                assert!(include_str!("derive.rs").contains(&arm), "{library:?} {id}: {name}");
            }
        }
    }

    /// Settings of verl with these fields, and nothing known of others.
    fn some(fields: &[(&str, Json)]) -> Settings {
        let mut settings = Settings { library: Some(Library::Verl), ..Settings::default() };
        for (name, json) in fields {
            let value = Value { json: json.clone(), origin: Origin::Flag };
            settings.fields.insert((*name).to_owned(), value);
        }
        settings
    }

    fn of_products(settings: &Settings, products: &[(&[&str], &[&str])]) -> Option<Json> {
        let owned = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect();
        let products: Vec<Product> = products
            .iter()
            .map(|(factors, divisors)| Product {
                factors: owned(factors),
                divisors: owned(divisors),
            })
            .collect();
        first(settings, &products).map(|value| value.json)
    }

    #[test]
    fn products_are_known_where_all_factors_are_or_one_is_zero() {
        let settings = some(&[
            ("on", json!(true)),
            ("off", json!(false)),
            ("x", json!(6)),
            ("text", json!("4")),
            ("word", json!("many")),
            ("null", json!(null)),
        ]);
        let of =
            |factors: &[&str], divisors: &[&str]| of_products(&settings, &[(factors, divisors)]);
        assert_eq!(of(&["x", "on"], &[]), Some(json!(6)));
        assert_eq!(of(&["x", "text"], &[]), Some(json!(24)));
        assert_eq!(of(&["x"], &["text"]), Some(json!(1.5)));
        assert_eq!(of(&["off", "unknown"], &[]), Some(json!(0)));
        for (factors, divisors) in [
            (&["x", "unknown"][..], &[][..]),
            (&["x", "word"], &[]),
            (&["x", "null"], &[]),
            (&["x"], &["off"]),
        ] {
            assert_eq!(of(factors, divisors), None, "{factors:?} / {divisors:?}");
        }
    }

    #[test]
    fn the_first_field_that_is_set_counts_and_one_that_is_unknown_ends_the_search() {
        let mut settings = some(&[("null", json!(null)), ("x", json!(6))]);
        let of = |settings: &Settings, fields: &[&str]| {
            let products: Vec<[&str; 1]> = fields.iter().map(|field| [*field]).collect();
            let products: Vec<(&[&str], &[&str])> =
                products.iter().map(|field| (&field[..], &[][..])).collect();
            of_products(settings, &products)
        };
        assert_eq!(of(&settings, &["null", "x"]), Some(json!(6)));
        assert_eq!(of(&settings, &["null"]), Some(json!(null)));
        assert_eq!(of(&settings, &["not.set", "x"]), None);
        settings.is_complete = true;
        assert_eq!(of(&settings, &["not.set", "x"]), Some(json!(6)));
        settings.unread.insert("not".to_owned(), Origin::Flag);
        assert_eq!(of(&settings, &["not.set", "x"]), None);
    }
}
