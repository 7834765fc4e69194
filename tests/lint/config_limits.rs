//! What the rules about configurations say at their limits, of settings that are given by hand, and
//! of those that are not known.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use shakedown_lint::report::{Location, RuleStatus, Severity, Subject, Verdict};
use shakedown_lint::rules::Asked;
use shakedown_lint::settings::formats::from_json;
use shakedown_lint::settings::{Library, Origin, Settings, Value, rules};

/// What a rule says of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Error,
    Warning,
    Note,
    Quiet,
    Insufficient,
    NotApplicable,
}

use Said::{Error, Insufficient, NotApplicable, Note, Quiet, Warning};

/// A configuration that was read as a whole, each of whose settings and fields stands on a line.
fn whole(library: Library, call: &str, values: Json, fields: Json) -> Settings {
    let mut line = 0;
    let mut located = |items: Json| -> BTreeMap<String, Value> {
        let Json::Object(items) = items else { panic!("expected an object, found {items}") };
        let value = |(name, json)| {
            line += 1;
            let location = Location { file: "config.yaml".to_owned(), line };
            (name, Value { json, origin: Origin::Line(location) })
        };
        items.into_iter().map(value).collect()
    };
    let (values, fields) = (located(values), located(fields));
    Settings {
        library: Some(library),
        call: Some(call.to_owned()),
        values,
        fields,
        is_complete: true,
        format: "YAML".to_owned(),
        ..Settings::default()
    }
}

fn trl(values: Json, fields: Json) -> Settings {
    whole(Library::Trl, "GRPOConfig", values, fields)
}

/// With a field of its data: without any it would be a part of a configuration.
fn verl(values: Json, mut fields: Json) -> Settings {
    fields["data.shuffle"] = json!(true);
    whole(Library::Verl, "verl.trainer.main_ppo", values, fields)
}

fn openrlhf(values: Json, fields: Json) -> Settings {
    whole(Library::OpenRlhf, "openrlhf.cli.train_ppo_ray", values, fields)
}

fn nemo(values: Json, fields: Json) -> Settings {
    whole(Library::NemoRl, "examples/run_grpo.py", values, fields)
}

fn slime(values: Json, fields: Json) -> Settings {
    whole(Library::Slime, "train.py", values, fields)
}

fn of(settings: impl Fn(Json, Json) -> Settings, values: Json) -> Settings {
    settings(values, json!({}))
}

fn with(settings: impl Fn(Json, Json) -> Settings, fields: Json) -> Settings {
    settings(json!({}), fields)
}

/// What one rule says, and the whole of it.
fn said(rule: &str, settings: &Settings) -> (Said, Subject) {
    let asked = Asked { only: vec![rule.to_owned()], ..Asked::default() };
    let subject = settings.judge(&asked);
    let report = subject.rules.iter().find(|one| one.id == rule).expect("a rule of the list");
    let worst = subject.findings.iter().map(|finding| finding.severity).max();
    let said = match (report.status, worst) {
        (RuleStatus::Fires, Some(Severity::Error)) => Error,
        (RuleStatus::Fires, Some(Severity::Warning)) => Warning,
        (RuleStatus::Fires, Some(Severity::Note)) => Note,
        (RuleStatus::Quiet, None) => Quiet,
        (RuleStatus::Insufficient, None) => Insufficient,
        (RuleStatus::NotApplicable, None) => NotApplicable,
        other => panic!("{rule}: {other:?}"),
    };
    (said, subject)
}

type Case = (&'static str, Said, Settings);

/// All of the table.
fn cases() -> Vec<Case> {
    let parts = [groups(), batches(), rates(), kl(), clips(), sampling(), losses(), rewards()];
    parts.into_iter().flatten().chain(fields()).chain(rollouts()).chain(files()).collect()
}

fn groups() -> Vec<Case> {
    let of_group = |algorithm: &str, group: u64, scale: &str| {
        let json = json!({"algorithm": algorithm, "group": group, "advantage.scale": scale});
        of(verl, json)
    };
    vec![
        ("group-of-one", Error, of_group("grpo", 1, "group")),
        ("group-of-one", Error, of_group("reinforce_plus_plus_baseline", 1, "batch")),
        ("group-of-one", Error, of(slime, json!({"algorithm": "cispo", "group": 1}))),
        ("group-of-one", Quiet, of_group("rloo", 2, "none")),
        ("group-of-one", NotApplicable, of_group("gae", 1, "batch")),
        ("group-of-one", NotApplicable, of_group("remax", 1, "none")),
        ("group-of-one", NotApplicable, of_group("reinforce_plus_plus", 1, "batch")),
        ("group-of-one", Insufficient, of(verl, json!({"group": 1}))),
        ("group-of-one", Insufficient, of(verl, json!({"algorithm": "grpo"}))),
        ("group-of-two", Warning, of_group("grpo", 2, "group")),
        ("group-of-two", Note, of_group("rloo", 2, "none")),
        ("group-of-two", Note, of_group("grpo", 3, "group")),
        ("group-of-two", Quiet, of_group("grpo", 4, "group")),
        ("group-of-two", Quiet, of_group("grpo", 1, "group")),
        ("group-of-two", NotApplicable, of_group("gae", 2, "batch")),
    ]
}

fn batches() -> Vec<Case> {
    const DYNAMIC: &str = "actor_rollout_ref.actor.use_dynamic_bsz";
    let sizes = |library: fn(Json, Json) -> Settings, prompts: u64, group: u64, update: u64| {
        let json = json!({
            "batch.prompts": prompts, "group": group, "batch.update": update, "batch.passes": 1,
        });
        of(library, json)
    };
    let on_gpus = |prompts: u64, gpus: u64, fields: Json| {
        let values = json!({
            "batch.prompts": prompts, "group": 4, "batch.update": prompts, "gpus": gpus,
            "batch.micro": 1,
        });
        verl(values, fields)
    };
    let passes = |prompts: u64, passes: u64| {
        let json = json!({
            "batch.prompts": prompts, "batch.update": 16, "batch.passes": passes,
        });
        of(verl, json)
    };
    let megatron = json!({
        DYNAMIC: false,
        "actor_rollout_ref.actor.strategy": "megatron",
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size": 4,
        "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size": 2,
    });
    let process = |rows: u64, fields: Json| {
        trl(json!({"group": 8, "batch.micro": rows, "algorithm": "grpo"}), fields)
    };
    vec![
        ("batch-not-divisible", Error, of(trl, json!({"group": 8, "batch.prompts": 2.5}))),
        ("batch-not-divisible", Quiet, of(trl, json!({"group": 8, "batch.prompts": 3}))),
        ("batch-not-divisible", Note, process(6, json!({"gradient_accumulation_steps": 2}))),
        ("batch-not-divisible", Warning, {
            let script = process(6, json!({"gradient_accumulation_steps": 2}));
            Settings { format: "Python".to_owned(), ..script }
        }),
        ("batch-not-divisible", Quiet, process(6, json!({"gradient_accumulation_steps": 4}))),
        ("batch-not-divisible", Quiet, {
            let fields = json!({"gradient_accumulation_steps": 1, "steps_per_generation": 4});
            process(6, fields)
        }),
        ("batch-not-divisible", Warning, sizes(verl, 100, 4, 64)),
        ("batch-not-divisible", Quiet, sizes(verl, 128, 4, 64)),
        ("batch-not-divisible", Quiet, sizes(verl, 0, 4, 64)),
        ("batch-not-divisible", Warning, sizes(openrlhf, 100, 4, 128)),
        ("batch-not-divisible", Quiet, sizes(openrlhf, 100, 4, 100)),
        ("batch-not-divisible", Warning, sizes(nemo, 32, 15, 512)),
        ("batch-not-divisible", Error, sizes(slime, 32, 15, 128)),
        ("batch-not-divisible", Quiet, sizes(slime, 32, 16, 128)),
        ("batch-not-divisible", Error, on_gpus(6, 16, json!({DYNAMIC: false}))),
        ("batch-not-divisible", Quiet, on_gpus(8, 16, json!({DYNAMIC: false}))),
        ("batch-not-divisible", Quiet, on_gpus(6, 16, json!({DYNAMIC: true}))),
        ("batch-not-divisible", Quiet, on_gpus(6, 48, megatron.clone())),
        ("batch-not-divisible", Error, on_gpus(7, 48, megatron)),
        ("batch-not-divisible", NotApplicable, of(trl, json!({"algorithm": "dpo"}))),
        ("mini-batch-too-large", Error, sizes(verl, 128, 8, 256)),
        ("mini-batch-too-large", Quiet, sizes(verl, 256, 8, 256)),
        ("mini-batch-too-large", Quiet, sizes(verl, 0, 8, 256)),
        ("mini-batch-too-large", Warning, {
            let values = json!({"batch.prompts": 2, "group": 8, "batch.update": 256});
            verl(values, json!({DYNAMIC: true}))
        }),
        ("mini-batch-too-large", Error, sizes(openrlhf, 16, 8, 256)),
        ("mini-batch-too-large", Quiet, sizes(openrlhf, 128, 8, 256)),
        ("mini-batch-too-large", NotApplicable, sizes(trl, 16, 8, 256)),
        ("mini-batch-too-large", NotApplicable, {
            let values = json!({"batch.prompts": 8, "group": 1, "batch.update": 32});
            verl(values, json!({"env.train.num_envs": 4}))
        }),
        ("off-policy", Quiet, passes(256, 1)),
        ("off-policy", Note, passes(256, 2)),
        ("off-policy", Note, passes(1024, 1)),
        ("off-policy", Warning, passes(1024, 2)),
        ("off-policy", Insufficient, of(verl, json!({"batch.prompts": 16, "batch.update": 16}))),
    ]
}

fn rates() -> Vec<Case> {
    let rate = |lr: f64, adapters: bool| of(trl, json!({"lr": lr, "lora": adapters}));
    let clip = |limit: Json| of(trl, json!({"gradient.clip": limit}));
    let entropy = |weight: Json| of(verl, json!({"entropy.coef": weight}));
    let discount =
        |gamma: f64, algorithm: &str| of(verl, json!({"discount": gamma, "algorithm": algorithm}));
    vec![
        ("learning-rate", Error, rate(0.0, true)),
        ("learning-rate", Error, rate(-1e-6, false)),
        ("learning-rate", Quiet, rate(1e-5, false)),
        ("learning-rate", Warning, rate(1.1e-5, false)),
        ("learning-rate", Warning, rate(1e-4, false)),
        ("learning-rate", Error, rate(1.1e-4, false)),
        ("learning-rate", Quiet, rate(5e-4, true)),
        ("learning-rate", Warning, rate(6e-4, true)),
        ("learning-rate", Warning, rate(2e-3, true)),
        ("learning-rate", Error, rate(3e-3, true)),
        // What is trained is not known: nothing is said that holds of adapters alone.
        ("learning-rate", Quiet, of(trl, json!({"lr": 1e-4}))),
        ("learning-rate", Warning, of(trl, json!({"lr": 1e-3}))),
        ("gradient-clipping", Warning, clip(json!(0))),
        ("gradient-clipping", Warning, clip(json!(null))),
        ("gradient-clipping", Warning, clip(json!(11))),
        ("gradient-clipping", Quiet, clip(json!(10))),
        ("gradient-clipping", Quiet, clip(json!(0.01))),
        ("gradient-clipping", Note, clip(json!(0.009))),
        ("entropy-coefficient", Error, entropy(json!(-0.001))),
        ("entropy-coefficient", Quiet, entropy(json!(0.01))),
        ("entropy-coefficient", Warning, entropy(json!(0.011))),
        ("entropy-coefficient", Warning, entropy(json!(0.1))),
        ("entropy-coefficient", Error, entropy(json!(0.11))),
        ("entropy-coefficient", Quiet, entropy(json!(null))),
        ("discount", Warning, discount(0.98, "gae")),
        ("discount", Quiet, discount(0.99, "gae")),
        ("discount", NotApplicable, discount(0.9, "grpo")),
    ]
}

fn kl() -> Vec<Case> {
    let kl = |loss: f64, reward: f64| {
        let json = json!({"algorithm": "grpo", "kl.loss": loss, "kl.reward": reward});
        of(verl, json)
    };
    let beta = |beta: f64, kind: &str| {
        trl(json!({"algorithm": "dpo", "kl.loss": beta}), json!({"loss_type": [kind]}))
    };
    let estimator = |estimator: &str, weight: f64| {
        of(openrlhf, json!({"kl.estimator": estimator, "kl.loss": weight}))
    };
    let switch = |on: bool, weight: f64| {
        let fields = json!({
            "actor_rollout_ref.actor.use_kl_loss": on,
            "actor_rollout_ref.actor.kl_loss_coef": weight,
        });
        with(verl, fields)
    };
    let shared = |on: bool, weight: f64| {
        with(openrlhf, json!({"algo.kl.use_loss": on, "algo.kl.init_coef": weight}))
    };
    vec![
        ("kl-coefficient", Error, kl(-0.01, 0.0)),
        ("kl-coefficient", Quiet, kl(0.19, 0.0)),
        ("kl-coefficient", Warning, kl(0.2, 0.0)),
        ("kl-coefficient", Warning, kl(0.0, 0.99)),
        ("kl-coefficient", Error, kl(0.0, 1.0)),
        ("kl-coefficient", Insufficient, of(verl, json!({"algorithm": "grpo"}))),
        ("kl-coefficient", Error, beta(0.0, "sigmoid")),
        ("kl-coefficient", Quiet, beta(0.5, "sigmoid")),
        ("kl-coefficient", Warning, beta(1.5, "sigmoid")),
        ("kl-coefficient", Quiet, beta(5.0, "sigmoid_norm")),
        ("kl-coefficient", Quiet, {
            let fields = json!({"dpo.preference_average_log_probs": true});
            nemo(json!({"algorithm": "dpo", "kl.loss": 5}), fields)
        }),
        ("kl-twice", Warning, kl(0.001, 0.001)),
        ("kl-twice", Quiet, kl(0.001, 0.0)),
        ("kl-twice", Quiet, kl(0.0, 0.001)),
        ("kl-twice", Insufficient, of(verl, json!({"kl.loss": 0.1}))),
        ("kl-twice", NotApplicable, of(trl, json!({"kl.loss": 0.1}))),
        ("kl-without-effect", Note, switch(true, 0.0)),
        ("kl-without-effect", Note, switch(false, 0.001)),
        ("kl-without-effect", Quiet, switch(true, 0.001)),
        ("kl-without-effect", Quiet, switch(false, 0.0)),
        ("kl-without-effect", Note, shared(true, 0.0)),
        ("kl-without-effect", Quiet, shared(false, 0.01)),
        ("kl-without-effect", NotApplicable, of(trl, json!({"kl.loss": 0.1}))),
        ("kl-estimator", Warning, estimator("k1", 0.01)),
        ("kl-estimator", Quiet, estimator("k3", 0.01)),
        ("kl-estimator", Quiet, estimator("k1", 0.0)),
    ]
}

fn clips() -> Vec<Case> {
    let clips = |low: f64, high: f64, level: &str| {
        of(verl, json!({"clip.low": low, "clip.high": high, "ratio.level": level}))
    };
    let kind = |kind: &str| of(verl, json!({"clip.low": 0.0, "clip.high": 5.0, "loss.kind": kind}));
    vec![
        ("clip-range", Quiet, clips(0.2, 0.28, "token")),
        ("clip-range", Error, clips(0.0, 0.2, "token")),
        ("clip-range", Error, clips(0.2, 1.0, "token")),
        ("clip-range", Error, clips(-0.1, 3e-4, "sequence")),
        ("clip-range", Warning, clips(0.009, 0.2, "token")),
        ("clip-range", Quiet, clips(0.01, 0.5, "token")),
        ("clip-range", Warning, clips(0.2, 0.51, "token")),
        ("clip-range", Warning, clips(0.2, 0.1, "token")),
        ("clip-range", Quiet, clips(3e-4, 4e-4, "sequence")),
        ("clip-range", Note, clips(3e-4, 0.05, "sequence")),
        ("clip-range", NotApplicable, kind("cispo")),
        ("clip-range", NotApplicable, kind("clip_cov")),
        ("clip-range", NotApplicable, kind("kl_cov")),
        ("clip-range", NotApplicable, kind("sapo")),
        ("clip-range", Error, kind("vanilla")),
        ("clip-range", Insufficient, of(verl, json!({"clip.low": 0.2}))),
    ]
}

fn sampling() -> Vec<Case> {
    let heat = |temperature: f64, algorithm: &str| {
        of(verl, json!({"temperature": temperature, "algorithm": algorithm}))
    };
    let filter = |id: &str, value: Json| of(trl, json!({"sampling.top_p": 1.0, id: value}));
    let lengths = |library: fn(Json, Json) -> Settings, id: &str, limit: Json| {
        of(library, json!({"length.prompt": 512, "length.completion": 1024, id: limit}))
    };
    vec![
        ("temperature", Error, heat(0.0, "grpo")),
        ("temperature", Warning, heat(0.0, "gae")),
        ("temperature", Error, heat(-1.0, "gae")),
        ("temperature", Warning, heat(0.29, "grpo")),
        ("temperature", Quiet, heat(0.3, "grpo")),
        ("temperature", Quiet, heat(1.5, "grpo")),
        ("temperature", Warning, heat(1.6, "grpo")),
        ("sampling-filter", Quiet, filter("sampling.top_k", json!(-1))),
        ("sampling-filter", Quiet, filter("sampling.top_k", json!(0))),
        ("sampling-filter", Quiet, filter("sampling.min_p", json!(null))),
        ("sampling-filter", Warning, filter("sampling.top_k", json!(20))),
        ("sampling-filter", Warning, filter("sampling.min_p", json!(0.05))),
        ("sampling-filter", Warning, filter("sampling.repetition_penalty", json!(1.1))),
        ("sampling-filter", Warning, of(verl, json!({"sampling.top_p": 0.95}))),
        ("sampling-filter", Insufficient, of(verl, json!({"sampling.top_k": -1}))),
        ("sampling-filter", NotApplicable, of(nemo, json!({"sampling.top_p": 0.95}))),
        ("lengths", Error, lengths(verl, "length.context", json!(1535))),
        ("lengths", Quiet, lengths(verl, "length.context", json!(1536))),
        ("lengths", Quiet, lengths(verl, "length.context", json!(null))),
        ("lengths", Error, lengths(openrlhf, "length.total", json!(1023))),
        ("lengths", Quiet, lengths(openrlhf, "length.total", json!(1024))),
        ("lengths", Error, lengths(verl, "length.per_gpu", json!(1535))),
        ("lengths", Quiet, lengths(verl, "length.per_gpu", json!(1536))),
        ("lengths", Note, lengths(slime, "length.per_gpu", json!(1535))),
        ("lengths", Error, of(trl, json!({"length.completion": 9, "length.context": 8}))),
        ("lengths", Insufficient, of(verl, json!({"length.completion": 1024}))),
        ("end-ignored", Error, with(verl, json!({"actor_rollout_ref.rollout.ignore_eos": true}))),
        ("end-ignored", Error, with(slime, json!({"rollout-ignore-eos": true}))),
        ("end-ignored", Quiet, with(verl, json!({"actor_rollout_ref.rollout.ignore_eos": false}))),
        ("end-ignored", Quiet, with(trl, json!({}))),
    ]
}

fn losses() -> Vec<Case> {
    let loss = |aggregate: &str, scale: &str, length: u64| {
        let json = json!({
            "loss.aggregate": aggregate, "advantage.scale": scale, "length.completion": length,
        });
        of(verl, json)
    };
    vec![
        ("half-dr-grpo", Warning, loss("seq-mean-token-sum-norm", "group", 8)),
        ("half-dr-grpo", Quiet, loss("seq-mean-token-sum-norm", "none", 8)),
        ("half-dr-grpo", Quiet, loss("token-mean", "group", 8)),
        ("loss-is-a-sum", Warning, loss("token-sum", "group", 8)),
        ("loss-is-a-sum", Quiet, loss("seq-mean-token-sum", "group", 8)),
        ("length-bias", Note, loss("seq-mean-token-mean", "group", 4097)),
        ("length-bias", Quiet, loss("seq-mean-token-mean", "group", 4096)),
        ("length-bias", Quiet, loss("token-mean", "group", 32_768)),
        ("dropout", Error, of(slime, json!({"dropout": 0.1}))),
        ("dropout", Quiet, of(slime, json!({"dropout": 0}))),
        ("dropout", NotApplicable, of(verl, json!({}))),
    ]
}

fn rewards() -> Vec<Case> {
    let called = |call: &str, fields: Json| whole(Library::Trl, call, json!({}), fields);
    let weights = |weights: Json, functions: Json| {
        with(trl, json!({"reward_weights": weights, "reward_funcs": functions}))
    };
    vec![
        ("columns-removed", Warning, with(trl, json!({"remove_unused_columns": true}))),
        ("columns-removed", Quiet, with(trl, json!({"remove_unused_columns": false}))),
        ("columns-removed", Quiet, with(trl, json!({}))),
        ("columns-removed", NotApplicable, called("PPOConfig", json!({}))),
        ("columns-removed", NotApplicable, called("DPOConfig", json!({}))),
        ("columns-removed", NotApplicable, with(verl, json!({}))),
        ("reward-weights", Error, weights(json!([1.0, 0.5]), json!(["accuracy"]))),
        ("reward-weights", Quiet, weights(json!([1.0, 0.5]), json!(["accuracy", "format"]))),
        ("reward-weights", Quiet, weights(json!([1.0]), json!("accuracy"))),
        ("reward-weights", Quiet, with(trl, json!({"reward_funcs": ["accuracy", "format"]}))),
        ("reward-weights", Insufficient, with(trl, json!({"reward_weights": [1.0, 0.5]}))),
        ("reward-weights", NotApplicable, with(verl, json!({}))),
    ]
}

fn fields() -> Vec<Case> {
    let sizes = json!({"generation_batch_size": 64, "steps_per_generation": 4});
    let written = Settings { is_resolved: true, ..with(trl, sizes.clone()) };
    let filter = |fields: Json| with(verl, fields);
    let forced = |update: u64| {
        let values = json!({
            "batch.prompts": 32, "group": 16, "batch.update": update, "batch.passes": 1,
        });
        nemo(values, json!({"loss_fn.force_on_policy_ratio": true}))
    };
    let bounds = |low: Json, high: f64| {
        let fields = json!({
            "vllm_importance_sampling_clip_min": low, "vllm_importance_sampling_clip_max": high,
        });
        with(trl, fields)
    };
    let micro = |fields: Json| with(verl, fields);
    let open = |library: fn(Json, Json) -> Settings, name: &str| Settings {
        is_open: true,
        ..library(json!({}), json!({name: 1}))
    };
    let mut added = with(verl, json!({"trainer.mine": 1}));
    added.added = BTreeSet::from(["trainer.mine".to_owned()]);
    vec![
        ("contradiction", Error, with(trl, sizes)),
        ("contradiction", Quiet, written),
        ("contradiction", Quiet, with(trl, json!({"steps_per_generation": 4}))),
        ("contradiction", Error, with(trl, json!({"fp16": true, "bf16": true}))),
        ("contradiction", Quiet, with(trl, json!({"fp16": false, "bf16": true}))),
        ("contradiction", Error, {
            micro(
                json!({"critic.ppo_micro_batch_size": 8, "critic.ppo_micro_batch_size_per_gpu": 1}),
            )
        }),
        ("contradiction", Quiet, micro(json!({"critic.ppo_micro_batch_size_per_gpu": 1}))),
        ("contradiction", Quiet, {
            micro(json!({
                "critic.ppo_micro_batch_size": 8, "critic.ppo_micro_batch_size_per_gpu": 1,
                "critic.use_dynamic_bsz": true,
            }))
        }),
        ("contradiction", Error, filter(json!({"algorithm.filter_groups.enable": true}))),
        ("contradiction", Quiet, {
            filter(json!({
                "algorithm.filter_groups.enable": true, "algorithm.filter_groups.metric": "acc",
            }))
        }),
        ("contradiction", Quiet, {
            filter(json!({
                "algorithm.filter_groups.enable": false, "algorithm.filter_groups.metric": null,
            }))
        }),
        ("contradiction", Error, forced(256)),
        ("contradiction", Quiet, forced(512)),
        ("contradiction", Error, bounds(json!(2.0), 2.0)),
        ("contradiction", Quiet, bounds(json!(0.5), 2.0)),
        ("contradiction", Quiet, bounds(json!(null), 2.0)),
        ("contradiction", Error, with(slime, json!({"tis-clip-low": 3, "tis-clip": 2}))),
        ("invalid-value", Error, with(trl, json!({"max_steps": null}))),
        ("invalid-value", Quiet, with(trl, json!({"max_steps": -1}))),
        ("invalid-value", Error, with(trl, json!({"loss_type": "dapoo"}))),
        ("invalid-value", Quiet, with(trl, json!({"loss_type": "luspo"}))),
        ("invalid-value", Error, with(openrlhf, json!({"algo.advantage.estimator": "grpo"}))),
        ("invalid-value", Quiet, with(openrlhf, json!({"algo.advantage.estimator": "rloo"}))),
        ("invalid-value", Quiet, {
            with(verl, json!({"actor_rollout_ref.actor.kl_loss_type": "k3+"}))
        }),
        ("unknown-field", Error, with(trl, json!({"num_generation": 8}))),
        ("unknown-field", Warning, with(trl, json!({"max_prompt_length": 512}))),
        ("unknown-field", Quiet, with(trl, json!({"num_generations": 8, "learning_rate": 1e-6}))),
        ("unknown-field", Quiet, open(trl, "my_own")),
        ("unknown-field", Error, open(trl, "loging_steps")),
        ("unknown-field", Quiet, open(nemo, "policy.tokenizer.chat_template")),
        ("unknown-field", Quiet, open(nemo, "grpo.skip_reference_policy_logprobs_calculation")),
        ("unknown-field", Error, open(nemo, "grpo.num_prompt_per_step")),
        ("unknown-field", Error, with(verl, json!({"trainer.mine": 1}))),
        ("unknown-field", Quiet, added),
        ("unknown-field", Insufficient, with(slime, json!({"my-own": 1}))),
    ]
}

fn rollouts() -> Vec<Case> {
    let rollouts = |asynchronous: bool, correction: Json| {
        let mut values = json!({"asynchronous": asynchronous});
        values["correction"] = correction;
        values
    };
    const ASYNCHRONOUS: &str = "asynchronous-without-correction";
    vec![
        (ASYNCHRONOUS, Warning, of(verl, rollouts(true, json!(false)))),
        (ASYNCHRONOUS, Warning, of(openrlhf, rollouts(true, json!(null)))),
        (ASYNCHRONOUS, Error, of(nemo, rollouts(true, json!(false)))),
        (ASYNCHRONOUS, Quiet, of(nemo, rollouts(true, json!(true)))),
        (ASYNCHRONOUS, Quiet, of(nemo, rollouts(false, json!(false)))),
        (ASYNCHRONOUS, Quiet, {
            slime(rollouts(true, json!(false)), json!({"use-rollout-logprobs": true}))
        }),
        (ASYNCHRONOUS, Insufficient, of(verl, json!({"asynchronous": true}))),
        ("rollout-uncorrected", Note, {
            trl(json!({"correction": false}), json!({"use_vllm": true}))
        }),
        ("rollout-uncorrected", Quiet, {
            trl(json!({"correction": false}), json!({"use_vllm": false}))
        }),
        ("rollout-uncorrected", Quiet, {
            trl(json!({"correction": true}), json!({"use_vllm": true}))
        }),
        ("rollout-uncorrected", Quiet, {
            let bypass = json!({"algorithm.rollout_correction.bypass_mode": true});
            verl(json!({"correction": false}), bypass)
        }),
    ]
}

fn files() -> Vec<Case> {
    let data = |train: Json, eval: Json| of(verl, json!({"data.train": train, "data.eval": eval}));
    let models = |policy: &str, reference: &str| {
        let script = with(trl, json!({"model": policy, "ref_model": reference}));
        Settings { format: "Python".to_owned(), ..script }
    };
    let openrlhf_models = |policy: &str, reference: &str| {
        let fields =
            json!({"model.model_name_or_path": policy, "ref.model_name_or_path": reference});
        with(openrlhf, fields)
    };
    let logged = |steps: i64, every: f64, strategy: &str| {
        let fields = json!({
            "max_steps": steps, "logging_steps": every, "logging_strategy": strategy,
        });
        with(trl, fields)
    };
    let (train, test) = (json!("~/math/train.parquet"), json!("~/math/test.parquet"));
    vec![
        ("validated-on-training-data", Warning, data(train.clone(), train.clone())),
        ("validated-on-training-data", Quiet, data(train.clone(), test.clone())),
        ("validated-on-training-data", Quiet, data(train.clone(), json!([]))),
        ("validated-on-training-data", Quiet, data(train.clone(), json!([train, test]))),
        ("validated-on-training-data", Warning, data(json!([train, test]), json!([train]))),
        ("validated-on-training-data", Quiet, data(json!("org/set"), json!("org/set"))),
        ("validated-on-training-data", Insufficient, data(train.clone(), json!(null))),
        ("validated-on-training-data", NotApplicable, {
            of(trl, json!({"data.train": train, "data.eval": train}))
        }),
        ("reference-differs", Warning, openrlhf_models("gpt2", "gpt2-medium")),
        ("reference-differs", Quiet, openrlhf_models("gpt2", "gpt2")),
        ("reference-differs", Warning, models("org/small", "org/large")),
        ("reference-differs", Quiet, models("org/small", "org/small/")),
        ("reference-differs", Insufficient, models("model", "ref_model")),
        ("reference-differs", Insufficient, models("org/small", "Auto.load('org/small')")),
        ("reference-differs", NotApplicable, with(trl, json!({"model": "org/small"}))),
        ("nothing-saved", Note, of(verl, json!({"save.every": -1}))),
        ("nothing-saved", Note, of(slime, json!({"save.every": null}))),
        ("nothing-saved", Quiet, of(verl, json!({"save.every": 1}))),
        ("logged-rarely", Note, logged(190, 10.0, "steps")),
        ("logged-rarely", Quiet, logged(200, 10.0, "steps")),
        ("logged-rarely", Note, logged(1000, 0.1, "steps")),
        ("logged-rarely", Insufficient, logged(10, 10.0, "epoch")),
        ("logged-rarely", Insufficient, logged(-1, 10.0, "steps")),
        ("logged-rarely", Note, with(verl, json!({"trainer.total_training_steps": 19}))),
        ("logged-rarely", Quiet, with(verl, json!({"trainer.total_training_steps": 20}))),
    ]
}

fn fires(said: Said) -> bool {
    matches!(said, Error | Warning | Note)
}

#[test]
fn every_rule_says_what_the_table_says() {
    for (rule, expected, settings) in cases() {
        let (found, subject) = said(rule, &settings);
        assert_eq!(found, expected, "{rule}: {:?} {:?}", subject.settings, settings.fields);
        for finding in &subject.findings {
            let location = finding.location.as_ref().expect("a finding points at its setting");
            let of_line = |value: &&Value| value.origin == Origin::Line(location.clone());
            let mut all = settings.values.values().chain(settings.fields.values());
            assert!(all.any(|value| of_line(&value)), "{rule}: {location:?}");
            assert!(!finding.found.ends_with('.') && !finding.next.is_empty(), "{rule}");
        }
    }
}

#[test]
fn every_rule_of_the_list_fires_in_the_table_and_is_quiet_there() {
    let ids_where = |of: fn(Said) -> bool| -> BTreeSet<&str> {
        cases().into_iter().filter(|(_, said, _)| of(*said)).map(|(rule, ..)| rule).collect()
    };
    let listed: BTreeSet<&str> = rules::all().iter().map(|rule| rule.id).collect();
    assert_eq!(listed.len(), 33);
    assert_eq!(ids_where(fires), listed);
    assert_eq!(ids_where(|said| said == Quiet), listed);
}

#[test]
fn nothing_is_said_of_settings_that_are_not_known() {
    let nothing = Settings::default();
    for rule in rules::all() {
        let (found, subject) = said(rule.id, &nothing);
        assert!(matches!(found, Insufficient | NotApplicable), "{}: {found:?}", rule.id);
        assert_eq!(subject.verdict, Verdict::Insufficient);
    }
    // Each setting that a rule needs is named where it alone is missing, and is not taken for good.
    let mut checked = 0;
    for (rule, expected, settings) in cases().into_iter().filter(|case| fires(case.1)) {
        let rule = rules::all().iter().find(|one| one.id == rule).expect("a rule of the list");
        for id in rule.head.needs.iter().filter(|id| settings.values.contains_key(**id)) {
            let mut less = settings.clone();
            less.values.remove(*id);
            let (found, subject) = said(rule.id, &less);
            if found == Insufficient {
                let report = subject.rules.iter().find(|one| one.id == rule.id);
                let reason = report.and_then(|one| one.reason.clone()).expect("a reason");
                assert!(reason.contains("not known"), "{}: {reason}", rule.id);
                checked += 1;
            } else {
                assert_eq!(found, expected, "{} without {id}", rule.id);
            }
        }
    }
    assert!(checked > 60, "only {checked}");
}

#[test]
fn supervised_training_is_asked_for_unknown_fields_and_contradictions_only() {
    for (rule, expected, settings) in cases() {
        let supervised = Settings { is_supervised: true, ..settings };
        let expected = match rule {
            "unknown-field" | "contradiction" => expected,
            _ => NotApplicable,
        };
        assert_eq!(said(rule, &supervised).0, expected, "{rule}");
    }
}

/// What all rules say above a note of a configuration, given as a dictionary, but for what follows
/// from other findings.
fn above_a_note(json: Json, call: &str) -> Vec<String> {
    let settings = from_json(&json, Some(call)).unwrap_or_else(|error| panic!("{error}"));
    let subject = settings.judge(&Asked::default());
    let judged = subject.rules.iter().filter(|one| one.status == RuleStatus::Quiet).count();
    assert!(judged >= 15, "only {judged} rules were judged");
    let above = subject
        .findings
        .iter()
        .filter(|one| one.severity > Severity::Note && one.explained_by.is_none());
    above.map(|finding| format!("{}: {}", finding.rule, finding.found)).collect()
}

/// A usual configuration of verl.
fn usual() -> Json {
    json!({
        "algorithm": {"adv_estimator": "grpo", "use_kl_in_reward": false},
        "data": {
            "train_files": "train.parquet", "val_files": "test.parquet",
            "train_batch_size": 1024, "max_prompt_length": 512, "max_response_length": 1024,
        },
        "actor_rollout_ref": {
            "model": {"path": "Qwen/Qwen2-7B-Instruct"},
            "actor": {
                "optim": {"lr": 1e-6}, "ppo_mini_batch_size": 256,
                "ppo_micro_batch_size_per_gpu": 16, "use_kl_loss": true, "kl_loss_coef": 0.001,
                "kl_loss_type": "low_var_kl", "entropy_coeff": 0,
            },
            "rollout": {"name": "vllm", "n": 5, "gpu_memory_utilization": 0.6},
        },
        "trainer": {"n_gpus_per_node": 8, "nnodes": 1, "save_freq": 20, "test_freq": 5},
    })
}

#[test]
fn a_usual_configuration_has_nothing_above_a_note() {
    assert_eq!(above_a_note(usual(), "verl.trainer.main_ppo"), [""; 0]);
    let grpo = json!({
        "output_dir": "out", "learning_rate": 1e-6, "num_generations": 8, "beta": 0.0,
        "per_device_train_batch_size": 8, "gradient_accumulation_steps": 4, "use_vllm": true,
        "max_completion_length": 1024, "logging_steps": 1, "bf16": true,
    });
    assert_eq!(above_a_note(grpo.clone(), "GRPOConfig"), [""; 0]);
    let mut rloo = grpo;
    rloo["num_generations"] = json!(2);
    rloo["beta"] = json!(0.05);
    assert_eq!(above_a_note(rloo, "RLOOConfig"), [""; 0]);
}

#[test]
fn one_change_of_a_usual_configuration_is_one_finding() {
    for (path, value, rule) in [
        ("/actor_rollout_ref/rollout/n", json!(1), "group-of-one"),
        ("/data/train_batch_size", json!(1000), "batch-not-divisible"),
        ("/data/train_batch_size", json!(128), "mini-batch-too-large"),
        ("/actor_rollout_ref/actor/optim/lr", json!(1e-3), "learning-rate"),
        ("/actor_rollout_ref/actor/kl_loss_coef", json!(0.5), "kl-coefficient"),
        ("/actor_rollout_ref/actor/kl_loss_type", json!("kl"), "kl-estimator"),
        ("/actor_rollout_ref/actor/kl_loss_type", json!("k4"), "invalid-value"),
        ("/algorithm/use_kl_in_reward", json!(true), "kl-twice"),
        ("/actor_rollout_ref/actor/entropy_coeff", json!(0.02), "entropy-coefficient"),
        ("/data/val_files", json!("train.parquet"), "validated-on-training-data"),
    ] {
        let mut changed = usual();
        *changed.pointer_mut(path).expect("a field of it") = value;
        let found = above_a_note(changed, "verl.trainer.main_ppo");
        let rules: Vec<&str> =
            found.iter().filter_map(|one| one.split_once(": ")).map(|(rule, _)| rule).collect();
        assert_eq!(rules, [rule], "{path}: {found:?}");
    }
}
