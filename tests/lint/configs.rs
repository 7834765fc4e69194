//! Configurations of all libraries, in every form in which they are written, read into settings.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use shakedown_lint::settings::formats::{from_json, fuzz, read};
use shakedown_lint::settings::{Library, Origin, Settings};
use tempfile::TempDir;

/// Files in a folder of their own.
struct Files(TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Files {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Files(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, names: &[&str]) -> Settings {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        read(&paths, None, None, &[]).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The settings of one file.
fn of(name: &str, text: &str) -> Settings {
    Files::new(&[(name, text)]).read(&[name])
}

/// What reading one file says is wrong.
fn error(name: &str, text: &str) -> String {
    let files = Files::new(&[(name, text)]);
    let error = read(&[files.path(name)], None, None, &[]).unwrap_err().to_string();
    error.replace(&*files.0.path().to_string_lossy(), "")
}

/// Where a setting comes from: `FILE:LINE`, `default` or `flag`.
fn origin(settings: &Settings, id: &str) -> String {
    match &settings.values[id].origin {
        Origin::Line(at) => format!("{}:{}", at.file.rsplit('/').next().unwrap(), at.line),
        Origin::Flag => "flag".to_owned(),
        Origin::Default => "default".to_owned(),
        Origin::Metric => "metric".to_owned(),
    }
}

/// Asserts that settings have values and origins; `null` and an empty origin for unknown.
#[track_caller]
fn expect(settings: &Settings, expected: &[(&str, Json, &str)]) {
    for (id, json, place) in expected {
        match settings.values.get(*id) {
            None => assert_eq!(*place, "", "{id} is unknown"),
            Some(value) => {
                assert_eq!((&value.json, &*origin(settings, id)), (json, *place), "{id}");
            }
        }
    }
}

/// An id whose setting is unknown.
fn unknown(id: &str) -> (&str, Json, &str) {
    (id, Json::Null, "")
}

const VERL: &str = "\
defaults:
  - ppo_trainer
  - _self_

hydra:
  run: {dir: outputs}

data:
  train_files: ~/data/math/train.parquet
  val_files: ~/data/math/test.parquet
  train_batch_size: 512
  max_prompt_length: 1024
  max_response_length: 4096

actor_rollout_ref:
  actor:
    _target_: some.Class
    ppo_mini_batch_size: 128
    use_kl_loss: true
    use_dynamic_bsz: true
    ppo_max_token_len_per_gpu: ${oc.select:trainer.tokens,20000}
    ulysses_sequence_parallel_size: 2
    clip_ratio_high: 0.28
    optim:
      lr: 1e-6
  rollout:
    n: 8
    max_model_len: ${data.max_response_length}
algorithm:
  adv_estimator: grpo
trainer:
  n_gpus_per_node: 8
  nnodes: 2
";

#[test]
fn yaml_of_verl_has_products_defaults_and_references() {
    let settings = of("math.yaml", VERL);
    assert_eq!(settings.library, Some(Library::Verl));
    assert!(settings.is_complete && !settings.is_supervised && settings.unread.is_empty());
    expect(
        &settings,
        &[
            ("algorithm", json!("grpo"), "math.yaml:30"),
            ("group", json!(8), "math.yaml:27"),
            ("batch.prompts", json!(512), "math.yaml:11"),
            ("batch.update", json!(128), "math.yaml:18"),
            ("batch.passes", json!(1), "default"),
            ("lr", json!(1e-6), "math.yaml:25"),
            ("kl.loss", json!(0.001), "math.yaml:19"),
            ("kl.reward", json!(0), "default"),
            ("kl.estimator", json!("k3"), "default"),
            ("clip.low", json!(0.2), "default"),
            ("clip.high", json!(0.28), "math.yaml:23"),
            ("ratio.level", json!("token"), "default"),
            ("loss.aggregate", json!("token-mean"), "default"),
            ("advantage.scale", json!("group"), "default"),
            ("length.context", json!(4096), "math.yaml:28"),
            ("length.per_gpu", json!(40000), "math.yaml:21"),
            ("gpus", json!(16), "math.yaml:32"),
            ("data.train", json!("~/data/math/train.parquet"), "math.yaml:9"),
            ("lora", json!(false), "default"),
            ("save.every", json!(-1), "default"),
            unknown("asynchronous"),
        ],
    );
    assert!(!settings.fields.keys().any(|name| name.contains("_target_")));
    assert_eq!(settings.number("lr"), Some(1e-6));
}

#[test]
fn a_base_that_is_not_there_leaves_what_is_not_set_unknown() {
    let settings = of("mine.yaml", &VERL.replace("ppo_trainer", "our_base"));
    assert!(!settings.is_complete);
    assert!(settings.warnings[0].contains("`our_base`"), "{:?}", settings.warnings);
    expect(
        &settings,
        &[
            ("group", json!(8), "mine.yaml:27"),
            unknown("batch.passes"),
            unknown("kl.loss"),
            unknown("clip.low"),
            ("clip.high", json!(0.28), "mine.yaml:23"),
        ],
    );
}

#[test]
fn groups_of_hydra_are_read_where_they_are_beside_the_file() {
    let files = Files::new(&[
        (
            "top.yaml",
            "defaults:\n  - actor@actor_rollout_ref.actor: mine\n  - _self_\n\
            algorithm: {adv_estimator: rloo}\nactor_rollout_ref: {rollout: {n: 4}}\n",
        ),
        ("actor/mine.yaml", "ppo_mini_batch_size: 64\noptim:\n  lr: 5e-6\n"),
    ]);
    expect(
        &files.read(&["top.yaml"]),
        &[
            ("lr", json!(5e-6), "mine.yaml:3"),
            ("batch.update", json!(64), "mine.yaml:1"),
            ("group", json!(4), "top.yaml:5"),
            ("advantage.scale", json!("none"), "top.yaml:4"),
        ],
    );
}

#[test]
fn absolute_groups_of_hydra_are_beside_the_first_file_and_packages_are_inside_of_others() {
    let files = Files::new(&[
        (
            "top.yaml",
            "defaults:\n  - /actor@actor_rollout_ref.actor: dp_actor\n  - _self_\n\
            algorithm: {adv_estimator: grpo}\nactor_rollout_ref: {rollout: {n: 4}}\n",
        ),
        (
            "actor/dp_actor.yaml",
            "defaults:\n  - ../optim@optim: fsdp\n  - /engine@fsdp_config: fsdp\n  - actor\n  \
            - _self_\nppo_mini_batch_size: 64\n",
        ),
        ("actor/actor.yaml", "ppo_epochs: 2\nppo_mini_batch_size: 8\n"),
        ("optim/fsdp.yaml", "lr: 5e-6\n"),
        ("engine/fsdp.yaml", "ulysses_sequence_parallel_size: 4\n"),
    ]);
    let settings = files.read(&["top.yaml"]);
    assert!(settings.is_complete, "{:?}", settings.warnings);
    expect(
        &settings,
        &[
            ("batch.update", json!(64), "dp_actor.yaml:6"),
            ("batch.passes", json!(2), "actor.yaml:1"),
            ("lr", json!(5e-6), "fsdp.yaml:1"),
        ],
    );
    let parallel = "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size";
    assert_eq!(settings.fields[parallel].json, json!(4));
    assert_eq!(settings.fields.keys().filter(|name| name.contains("lr")).count(), 1);
    // Where the parts of a part are not there, they are those that verl has.
    let files = Files::new(&[
        ("top.yaml", "defaults: [/actor@actor_rollout_ref.actor: dp_actor, _self_]\n"),
        ("actor/dp_actor.yaml", "defaults: [../optim@optim: fsdp, actor]\nppo_epochs: 2\n"),
    ]);
    let settings = files.read(&["top.yaml"]);
    assert!(settings.is_complete, "{:?}", settings.warnings);
}

#[test]
fn sequences_of_verl_are_on_as_many_gpus_as_the_engine_says() {
    let per_gpu = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo data.max_prompt_length=2048 \\\n \
             data.max_response_length=8192 actor_rollout_ref.actor.use_dynamic_bsz=True \\\n \
             actor_rollout_ref.actor.ppo_max_token_len_per_gpu=2560 {more}\n"
        );
        of("run.sh", &text).number("length.per_gpu")
    };
    let actor = |field: &str| format!("actor_rollout_ref.actor.{field}");
    let engine = actor("fsdp_config.ulysses_sequence_parallel_size=4");
    assert_eq!(per_gpu(""), Some(2560.0));
    assert_eq!(per_gpu(&engine), Some(10240.0));
    let older = actor("ulysses_sequence_parallel_size");
    assert_eq!(per_gpu(&format!("{older}=2")), Some(5120.0));
    assert_eq!(per_gpu(&format!("{engine} {older}=1")), Some(10240.0));
    // The older one counts where it is more than 1.
    assert_eq!(per_gpu(&format!("{engine} {older}=2")), Some(5120.0));
    let megatron = actor("megatron.context_parallel_size=8");
    assert_eq!(per_gpu(&format!("{engine} {megatron}")), Some(20480.0));
}

#[test]
fn overrides_count_on_top_of_a_file() {
    let files = Files::new(&[
        ("config.yaml", VERL),
        (
            "overrides.yaml",
            "- actor_rollout_ref.rollout.n=16\n- +trainer.extra=1\n- ~trainer.nnodes\n\
             - 'actor_rollout_ref.actor={ppo_epochs: 2}'\n",
        ),
        ("more.txt", "# by hand\nalgorithm.adv_estimator=gae\n"),
    ]);
    let settings = files.read(&["config.yaml", "overrides.yaml", "more.txt"]);
    assert_eq!(settings.added.iter().collect::<Vec<_>>(), ["trainer.extra"]);
    assert_eq!(settings.files.len(), 3);
    expect(
        &settings,
        &[
            ("group", json!(16), "overrides.yaml:1"),
            ("gpus", json!(8), "config.yaml:32"),
            ("batch.passes", json!(2), "overrides.yaml:4"),
            ("algorithm", json!("gae"), "more.txt:2"),
            ("batch.update", json!(128), "config.yaml:18"),
        ],
    );
}

#[test]
fn a_chain_of_nemo_files_is_followed() {
    let files = Files::new(&[
        (
            "base.yaml",
            "grpo:\n  num_prompts_per_step: 32\n  num_generations_per_prompt: 16\n  \
             normalize_rewards: true\n  adv_estimator:\n    name: grpo\n    \
             normalize_rewards: ${grpo.normalize_rewards}\nloss_fn:\n  \
             reference_policy_kl_penalty: 0.01\n  ratio_clip_max: 0.2\npolicy:\n  \
             train_global_batch_size: 512\n  train_micro_batch_size: 4\n  max_grad_norm: 1.0\n  \
             max_total_sequence_length: 512\n  megatron_cfg: {enabled: false}\n  \
             dynamic_batching:\n    train_mb_tokens: ${mul:${policy.max_total_sequence_length}, \
             ${policy.train_micro_batch_size}}\n  optimizer:\n    kwargs:\n      lr: 5.0e-6\n  \
             generation:\n    max_new_tokens: ${policy.max_total_sequence_length}\n    \
             temperature: 1.0\n    top_p: 1.0\n    top_k: null\ncheckpointing: \
             {enabled: true, save_period: 10}\ncluster: {gpus_per_node: 1, num_nodes: 1}\n",
        ),
        (
            "recipes/mid.yaml",
            "defaults: ../base.yaml\npolicy:\n  max_total_sequence_length: 4096\n",
        ),
        (
            "recipes/top.yaml",
            "defaults: mid.yaml\ngrpo:\n  num_generations_per_prompt: 32\ncluster:\n  \
             gpus_per_node: 8\nloss_fn: {ratio_clip_max: 0.28}\n",
        ),
    ]);
    let settings = files.read(&["recipes/top.yaml"]);
    assert_eq!(settings.library, Some(Library::NemoRl));
    assert!(settings.is_complete);
    assert_eq!(settings.files.len(), 3);
    expect(
        &settings,
        &[
            ("algorithm", json!("grpo"), "base.yaml:6"),
            ("group", json!(32), "top.yaml:3"),
            ("batch.prompts", json!(32), "base.yaml:2"),
            ("batch.update", json!(512), "base.yaml:12"),
            ("lr", json!(5e-6), "base.yaml:21"),
            ("kl.loss", json!(0.01), "base.yaml:9"),
            ("kl.reward", json!(0), "base.yaml:9"),
            ("clip.low", json!(0.2), "default"),
            ("clip.high", json!(0.28), "top.yaml:6"),
            ("advantage.scale", json!("group"), "base.yaml:7"),
            ("length.completion", json!(4096), "base.yaml:23"),
            ("length.total", json!(4096), "mid.yaml:3"),
            ("gpus", json!(8), "top.yaml:5"),
            ("gradient.clip", json!(1.0), "base.yaml:14"),
            ("sampling.top_k", json!(null), "base.yaml:26"),
            ("save.every", json!(10), "base.yaml:27"),
            ("lora", json!(false), "default"),
            unknown("asynchronous"),
        ],
    );
    let tokens = &settings.fields["policy.dynamic_batching.train_mb_tokens"].json;
    assert_eq!(tokens, &json!(16384));
}

const GRPO: &str = "\
# Model
model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct
dtype: bfloat16
attn_implementation: flash_attention_2

dataset_name: open-r1/OpenR1-Math-220k

num_generations: 16
per_device_train_batch_size: 16
gradient_accumulation_steps: 4
learning_rate: 2.0e-05
max_completion_length: 2048
scale_rewards: false
model_init_kwargs:
  use_cache: false
reward_funcs: [accuracy_reward, format_reward]
reward_weights: [1.0, 0.5]
";

#[test]
fn yaml_of_trl_needs_the_processes_for_its_batches() {
    let settings = of("config_demo.yaml", GRPO);
    assert_eq!(settings.library, Some(Library::Trl));
    assert_eq!(settings.call.as_deref(), Some("GRPOConfig"));
    assert!(settings.is_complete && settings.is_open);
    assert_eq!(settings.fields["model_init_kwargs"].json, json!({"use_cache": false}));
    expect(
        &settings,
        &[
            ("algorithm", json!("grpo"), "default"),
            ("group", json!(16), "config_demo.yaml:8"),
            ("lr", json!(2e-5), "config_demo.yaml:11"),
            ("kl.loss", json!(0.0), "default"),
            ("clip.high", json!(0.2), "default"),
            ("advantage.scale", json!("none"), "config_demo.yaml:13"),
            ("loss.aggregate", json!("token-mean"), "default"),
            ("lora", json!(false), "default"),
            ("save.every", json!(500), "default"),
            unknown("batch.prompts"),
            unknown("batch.update"),
            unknown("gpus"),
        ],
    );
    let files = Files::new(&[
        ("config_demo.yaml", GRPO),
        ("zero3.yaml", "compute_environment: LOCAL_MACHINE\nnum_machines: 1\nnum_processes: 8\n"),
    ]);
    for (settings, place) in [
        (files.read(&["zero3.yaml", "config_demo.yaml"]), "zero3.yaml:3"),
        (read(&[files.path("config_demo.yaml")], Some(8), None, &[]).unwrap(), "flag"),
    ] {
        expect(
            &settings,
            &[
                ("gpus", json!(8), place),
                ("batch.update", json!(512), "config_demo.yaml:9"),
                ("batch.prompts", json!(32), "config_demo.yaml:9"),
            ],
        );
        assert!(!settings.fields.contains_key("processes"));
    }
}

#[test]
fn the_trainer_of_trl_is_told_by_its_fields_or_by_the_name_of_the_file() {
    let call = |name: &str, text: &str| of(name, text).call;
    let both = "num_generations: 4\nbeta: 0.04\nlearning_rate: 1e-6\n";
    assert_eq!(call("a.yaml", both), None);
    assert_eq!(call("rloo_small.yaml", both).as_deref(), Some("RLOOConfig"));
    assert_eq!(
        call("a.yaml", &format!("{both}output_dir: my-grpo\n")).as_deref(),
        Some("GRPOConfig")
    );
    assert_eq!(
        call("a.yaml", &format!("{both}normalize_advantages: true\n")).as_deref(),
        Some("RLOOConfig")
    );
    let pairs = "beta: 0.1\nmax_length: 1024\nloss_type: sigmoid\nf_divergence_type: reverse_kl\n";
    let settings = of("a.yaml", pairs);
    assert_eq!(settings.call.as_deref(), Some("DPOConfig"));
    expect(
        &settings,
        &[("algorithm", json!("dpo"), "default"), ("kl.loss", json!(0.1), "a.yaml:1")],
    );
    // With both calls possible, the defaults are those of neither.
    expect(
        &of("a.yaml", both),
        &[("kl.loss", Json::Null, ""), ("group", json!(4), "a.yaml:1"), unknown("temperature")],
    );
    assert!(of("sft.yaml", "packing: true\nlearning_rate: 1e-5\nmax_length: 2048\n").is_supervised);
}

#[test]
fn arguments_that_trl_wrote_tell_the_processes() {
    let text = json!({
        "num_generations": 8, "generation_batch_size": 256, "steps_per_generation": 4,
        "per_device_train_batch_size": 8, "gradient_accumulation_steps": 4, "beta": 0.0,
        "loss_type": "dr_grpo", "learning_rate": 1e-6, "epsilon_high": null, "epsilon": 0.2,
        "max_grad_norm": 1.0, "output_dir": "caf\u{e9} \u{1f600}", "num_iterations": 2,
        "_n_gpu": 1,
    });
    let settings = from_json(&text, Some("GRPOConfig")).unwrap();
    assert!(settings.is_resolved && settings.is_complete);
    expect(
        &settings,
        &[
            ("gpus", json!(8), "flag"),
            ("batch.prompts", json!(32), "flag"),
            ("batch.passes", json!(2), "flag"),
            ("clip.high", json!(0.2), "flag"),
            ("loss.aggregate", json!("seq-mean-token-sum-norm"), "flag"),
            unknown("lora"),
        ],
    );
    let text = serde_json::to_string_pretty(&text).unwrap().replace('\u{1f600}', "\\ud83d\\ude00");
    let settings = of("training_args.json", &text);
    assert_eq!((settings.format.as_str(), settings.call.as_deref()), ("JSON", Some("GRPOConfig")));
    expect(
        &settings,
        &[("lr", json!(1e-6), "training_args.json:9"), ("group", json!(8), "training_args.json:2")],
    );
    assert!(settings.is_resolved && !settings.is_open);
    assert!(from_json(&json!([1]), None).is_err());
    assert!(from_json(&json!({"a": 1}), None).is_err());
}

#[test]
fn a_configuration_of_wandb_has_its_values_one_level_down() {
    let text = "\
wandb_version: 1
_wandb:
  value: {cli_version: 0.1}
actor_rollout_ref:
  desc: null
  value:
    actor: {ppo_mini_batch_size: 32, optim: {lr: 3e-6}}
    rollout:
      n: 6
algorithm:
  value: {adv_estimator: grpo}
";
    let settings = of("config.yaml", text);
    assert!(settings.is_resolved);
    expect(
        &settings,
        &[
            ("lr", json!(3e-6), "config.yaml:7"),
            ("group", json!(6), "config.yaml:9"),
            ("algorithm", json!("grpo"), "config.yaml:11"),
        ],
    );
    let slime = "n_samples_per_prompt: {value: 8}\nnum_rollout: {value: 100}\n\
                 advantage_estimator: {value: gspo}\nrollout_batch_size: {value: 32}\n";
    let settings = of("config.yaml", slime);
    assert_eq!(settings.library, Some(Library::Slime));
    expect(
        &settings,
        &[
            ("group", json!(8), "config.yaml:1"),
            ("ratio.level", json!("sequence"), "config.yaml:3"),
            ("advantage.scale", json!("group"), "default"),
        ],
    );
}

#[test]
fn what_is_set_by_hand_counts_most() {
    let files = Files::new(&[("a.yaml", VERL)]);
    let set = |pairs: &[(&str, &str)]| {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        read(&[files.path("a.yaml")], None, Some(8192), &pairs)
    };
    let settings = set(&[("lr", "2e-6"), ("actor_rollout_ref.actor.ppo_epochs", "4")]).unwrap();
    expect(
        &settings,
        &[
            ("lr", json!(2e-6), "flag"),
            ("batch.passes", json!(4), "flag"),
            ("length.context", json!(8192), "flag"),
        ],
    );
    // Which call takes the fields of a file of verl is not known, so any of them may be one.
    assert!(set(&[("trainer.mine", "1")]).is_ok());
    let files = Files::new(&[("grpo.yaml", GRPO)]);
    let pairs = [("num_generation".to_owned(), "4".to_owned())];
    let error = read(&[files.path("grpo.yaml")], None, None, &pairs).unwrap_err().to_string();
    assert!(error.contains("did you mean `num_generations`"), "{error}");
}

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    for (name, text, expected) in [
        ("a.yaml", "actor_rollout_ref: [\n", "/a.yaml:2:1: "),
        ("a.yaml", "", "/a.yaml: expected settings, found an empty file"),
        ("a.yaml", "- a\n- 1\n", "/a.yaml:1:3: expected an override, NAME=VALUE"),
        ("a.yaml", "colour: blue\n", "/a.yaml: expected settings of TRL, verl, OpenRLHF"),
        ("a.yaml", "defaults: a.yaml\n", "/a.yaml: is built on itself"),
        ("a.json", "{\"a\": 1", "/a.json:"),
        ("a.yaml", "policy: \u{0}", "/a.yaml:"),
    ] {
        let error = error(name, text);
        assert!(error.starts_with(expected), "{error}");
    }
    let nowhere = read(&[PathBuf::from("no/such.yaml")], None, None, &[]).unwrap_err();
    assert!(nowhere.to_string().starts_with("cannot read no/such.yaml"), "{nowhere}");
    assert!(read(&[], None, None, &[]).is_err());
    let folder = TempDir::new().unwrap();
    assert!(read(&[folder.path().to_owned()], None, None, &[]).is_err());
}

#[test]
fn distillation_is_supervised() {
    assert!(of("a.yaml", &format!("{VERL}distillation:\n  enabled: true\n")).is_supervised);
    let of_nemo = "distillation: {num_prompts_per_step: 8}\npolicy: {model_name: x}\n\
                   cluster: {num_nodes: 1}\n";
    assert!(of("a.yaml", of_nemo).is_supervised);
}

const LAUNCH: &str = "\
#!/bin/bash
set -x

MODEL=${MODEL:-Qwen/Qwen2.5-7B}
NGPUS=8
MAX_LEN=$((1024 * 4))
EXTRA=(
    # the optimiser
    actor_rollout_ref.actor.optim.lr=1e-6
    +actor_rollout_ref.model.override_config.attn_dropout=0.0
)
if [ -n \"$FAST\" ]; then
    EPOCHS=1
else
    EPOCHS=2
fi

python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_files=$HOME/data/train.parquet \\
    data.val_files=\"['$HOME/data/train.parquet']\" \\
    data.train_batch_size=512 \\
    data.max_response_length=${MAX_LEN} \\
    actor_rollout_ref.model.path=${MODEL} \\
    actor_rollout_ref.rollout.n=8 \\
    actor_rollout_ref.actor.ppo_epochs=$EPOCHS \\
    trainer.logger='[\"console\",\"wandb\"]' \\
    trainer.experiment_name=\"run_$(date +%s)\" \\
    trainer.n_gpus_per_node=$NGPUS \\
    \"${EXTRA[@]}\" $@ 2>&1 | tee log.txt
";

#[test]
fn a_script_of_verl_is_read_with_its_variables() {
    let settings = of("run.sh", LAUNCH);
    assert_eq!(settings.library, Some(Library::Verl));
    assert_eq!(settings.call.as_deref(), Some("verl.trainer.main_ppo"));
    assert!(settings.is_complete, "{:?}", settings.warnings);
    expect(
        &settings,
        &[
            ("algorithm", json!("grpo"), "run.sh:19"),
            ("group", json!(8), "run.sh:25"),
            ("batch.prompts", json!(512), "run.sh:22"),
            ("batch.update", json!(256), "default"),
            ("length.completion", json!(4096), "run.sh:23"),
            ("lr", json!(1e-6), "run.sh:9"),
            ("gpus", json!(8), "run.sh:29"),
            ("data.train", json!("$HOME/data/train.parquet"), "run.sh:20"),
            ("data.eval", json!(["$HOME/data/train.parquet"]), "run.sh:21"),
            ("asynchronous", json!(false), "default"),
            ("correction", json!(false), "default"),
            unknown("batch.passes"),
        ],
    );
    assert_eq!(settings.unread.len(), 2, "{:?}", settings.unread);
    assert_eq!(settings.fields["trainer.logger"].json, json!(["console", "wandb"]));
    assert_eq!(settings.fields["actor_rollout_ref.model.path"].json, json!("Qwen/Qwen2.5-7B"));
    let added = "actor_rollout_ref.model.override_config.attn_dropout";
    assert!(settings.added.contains(added));
}

#[test]
fn words_that_cannot_be_read_leave_what_is_not_set_unknown() {
    for extra in ["$EXTRA_ARGS", "${UNKNOWN[@]}", "$(./flags.sh)", "\"$MORE\""] {
        let settings = of("run.sh", &LAUNCH.replace("$@", extra));
        assert!(!settings.is_complete, "{extra}");
        assert!(settings.warnings[0].contains("line 30 of"), "{:?}", settings.warnings);
        expect(
            &settings,
            &[("group", json!(8), "run.sh:25"), unknown("kl.loss"), unknown("clip.low")],
        );
    }
    let in_function = format!("train() {{\n{LAUNCH}}}\ntrain algorithm.adv_estimator=gae\n");
    assert!(!of("run.sh", &in_function).is_complete);
}

const SLIME: &str = "\
set -ex
SCRIPT_DIR=\"$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" &>/dev/null && pwd)\"
source \"${SCRIPT_DIR}/models/small.sh\"
NUM_GPUS=${NUM_GPUS:-4}

ROLLOUT_ARGS=(
   --prompt-data /root/data/train.jsonl
   --num-rollout 3000 --eval-prompt-data aime /root/data/aime.jsonl
   --rollout-batch-size 32
   --n-samples-per-prompt 8
   --rollout-max-response-len 8192

   --global-batch-size 256
)
GRPO_ARGS=(
   --advantage-estimator grpo
   --use-kl-loss
   --kl-loss-coef 0.01
   --kl-loss-type low_var_kl
   --eps-clip 0.2
   --eps-clip-high 0.28
)
PERF_ARGS=(
   --use-dynamic-batch-size
   --max-tokens-per-gpu 9216
   --context-parallel-size 2
)
MISC_ARGS=(
   --attention-dropout 0.0
   # --hidden-dropout 0.0
)

ray job submit --address=\"http://127.0.0.1:8265\" \\
   --runtime-env-json=\"{\\\"env\\\": {}}\" \\
   -- python3 train_async.py \\
   --actor-num-nodes 1 \\
   --actor-num-gpus-per-node ${NUM_GPUS} \\
   --colocate \\
   ${MODEL_ARGS[@]} \\
   ${ROLLOUT_ARGS[@]} ${GRPO_ARGS[@]} \\
   ${PERF_ARGS[@]} ${MISC_ARGS[@]}
";

#[test]
fn a_script_of_slime_is_read_with_the_file_that_it_sources() {
    let model = "MODEL_ARGS=(\n   --num-layers 36\n   --rotary-base \"${BASE:-10000}\"\n)\n";
    let files = Files::new(&[("run.sh", SLIME), ("models/small.sh", model)]);
    let settings = files.read(&["run.sh"]);
    assert_eq!(settings.library, Some(Library::Slime));
    assert!(settings.is_complete, "{:?}", settings.warnings);
    assert_eq!(settings.files.len(), 2);
    expect(
        &settings,
        &[
            ("algorithm", json!("grpo"), "run.sh:16"),
            ("group", json!(8), "run.sh:10"),
            ("batch.prompts", json!(32), "run.sh:9"),
            ("batch.update", json!(256), "run.sh:13"),
            ("kl.loss", json!(0.01), "run.sh:18"),
            ("kl.reward", json!(0.0), "default"),
            ("kl.estimator", json!("k3"), "run.sh:19"),
            ("clip.high", json!(0.28), "run.sh:21"),
            ("length.per_gpu", json!(18432), "run.sh:25"),
            ("advantage.scale", json!("group"), "default"),
            ("loss.aggregate", json!("seq-mean-token-mean"), "default"),
            ("gpus", json!(4), "run.sh:37"),
            ("dropout", json!(0.1), "default"),
            ("asynchronous", json!(true), "default"),
            ("data.train", json!("/root/data/train.jsonl"), "run.sh:7"),
            ("data.eval", json!(["/root/data/aime.jsonl"]), "run.sh:8"),
            ("batch.passes", json!(1), "default"),
        ],
    );
    assert_eq!(settings.fields["rotary-base"].json, json!(10000));
    // Without the sourced file there may be any other flag.
    let settings = of("run.sh", SLIME);
    assert!(!settings.is_complete);
    assert!(
        settings
            .warnings
            .iter()
            .any(|one| one.contains("models/small.sh") && one.ends_with("is not read"))
    );
    expect(
        &settings,
        &[("group", json!(8), "run.sh:10"), unknown("dropout"), unknown("kl.reward")],
    );
    assert!(
        of("run.sh", &SLIME.replace("--num-rollout", "--loss-type sft_loss --num-rollout"))
            .is_supervised
    );
}

#[test]
fn a_script_of_openrlhf_is_read() {
    let flags = "\
   --actor.num_gpus_per_node 4 \\
   --train.batch_size 128 \\
   --rollout.n_samples_per_prompt 8 \\
   --algo.advantage.estimator group_norm \\
   --actor.eps_clip_low_high 0.2 0.27 \\
   --algo.kl.use_loss \\
   --algo.kl.init_coef 1e-3 \\
   --algo.kl.estimator k3 \\
   --actor.adam.lr 5e-7 \\
   --train.dynamic_batch_enable
";
    let settings = of("a.sh", &format!("python3 -m openrlhf.cli.train_ppo_ray \\\n{flags}"));
    assert_eq!(settings.library, Some(Library::OpenRlhf));
    assert!(settings.is_complete);
    expect(
        &settings,
        &[
            ("algorithm", json!("group_norm"), "a.sh:5"),
            ("group", json!(8), "a.sh:4"),
            ("batch.prompts", json!(1024), "default"),
            ("batch.update", json!(128), "a.sh:3"),
            ("lr", json!(5e-7), "a.sh:10"),
            ("kl.loss", json!(1e-3), "a.sh:8"),
            ("kl.reward", json!(0), "a.sh:7"),
            ("kl.estimator", json!("k3"), "a.sh:9"),
            ("clip.low", json!(0.2), "a.sh:6"),
            ("clip.high", json!(0.27), "a.sh:6"),
            ("length.per_gpu", json!(16192), "default"),
            ("advantage.scale", json!("group"), "a.sh:5"),
            ("gpus", json!(4), "a.sh:2"),
            ("lora", json!(false), "default"),
            ("entropy.coef", json!(null), "default"),
            ("asynchronous", json!(false), "default"),
        ],
    );
    let dpo = "read -r -d '' training_commands <<EOF\nopenrlhf.cli.train_dpo \\\n   \
               --adam.lr 5e-7 \\\n   --model.beta 0.1\nEOF\nif [[ ${1} != slurm ]]; then\n    \
               deepspeed --module $training_commands\nfi\n";
    expect(
        &of("dpo.sh", dpo),
        &[
            ("algorithm", json!("dpo"), "default"),
            ("lr", json!(5e-7), "dpo.sh:3"),
            ("kl.loss", json!(0.1), "dpo.sh:4"),
            unknown("kl.reward"),
        ],
    );
    assert!(
        of("sft.sh", "deepspeed --module openrlhf.cli.train_sft --data.max_len 2048\n")
            .is_supervised
    );
}

#[test]
fn a_script_of_trl_names_its_file_and_its_processes() {
    let files = Files::new(&[
        ("recipes/grpo.yaml", GRPO),
        ("zero.yaml", "compute_environment: LOCAL_MACHINE\nnum_processes: 6\n"),
        (
            "jobs/a.sh",
            "accelerate launch --config_file zero.yaml --num_processes=4 \\\n  src/train_grpo.py \
             --config recipes/grpo.yaml \\\n  --learning_rate 3e-6 --vllm-mode colocate\n",
        ),
        (
            "jobs/b.sh",
            "accelerate launch --config_file zero.yaml \\\n  src/train_grpo.py \
             --config recipes/grpo.yaml\n",
        ),
        ("jobs/c.sh", "trl grpo --config recipes/grpo.yaml --num_processes 2 --use_peft\n"),
        (
            "jobs/d.sh",
            "python train_rloo.py --num_generations 4 --max_completion_length 256 --bf16\n",
        ),
        (
            "jobs/e.sh",
            "torchrun --nproc_per_node 8 --nnodes=2 grpo.py --config recipes/grpo.yaml\n",
        ),
    ]);
    let settings = files.read(&["jobs/a.sh"]);
    assert!(settings.is_complete && settings.is_open);
    assert_eq!(settings.fields["vllm_mode"].json, json!("colocate"));
    expect(
        &settings,
        &[
            ("lr", json!(3e-6), "a.sh:3"),
            ("group", json!(16), "grpo.yaml:8"),
            ("gpus", json!(4), "a.sh:1"),
            ("batch.prompts", json!(16), "grpo.yaml:9"),
        ],
    );
    expect(&files.read(&["jobs/b.sh"]), &[("gpus", json!(6), "zero.yaml:2")]);
    let settings = files.read(&["jobs/c.sh"]);
    assert!(settings.is_complete && !settings.is_open);
    assert_eq!(settings.call.as_deref(), Some("GRPOConfig"));
    expect(&settings, &[("gpus", json!(2), "c.sh:1"), ("lora", json!(true), "c.sh:1")]);
    assert!(!settings.fields.contains_key("num_processes"));
    // A script of one's own may set more than its flags.
    let settings = files.read(&["jobs/d.sh"]);
    assert_eq!(settings.call.as_deref(), Some("RLOOConfig"));
    expect(
        &settings,
        &[("group", json!(4), "d.sh:1"), ("gpus", json!(1), "d.sh:1"), unknown("temperature")],
    );
    expect(&files.read(&["jobs/e.sh"]), &[("gpus", json!(16), "e.sh:1")]);
}

#[test]
fn scripts_of_nemo_and_of_other_files_of_verl_are_read() {
    let files = Files::new(&[
        (
            "configs/base.yaml",
            "grpo: {num_generations_per_prompt: 8}\npolicy: {max_grad_norm: 1.0}\n",
        ),
        (
            "a.sh",
            "uv run examples/run_grpo.py \\\n  --config configs/base.yaml \\\n  \
             grpo.num_prompts_per_step=16 ++policy.x=1\n",
        ),
        ("b.sh", "uv run examples/run_grpo.py grpo.num_prompts_per_step=16\n"),
        (
            "config/mine.yaml",
            "defaults: [ppo_trainer, _self_]\nactor_rollout_ref: {rollout: {n: 4}}\n",
        ),
        (
            "c.sh",
            "python -m verl.trainer.main_ppo --config-path=config --config-name='mine' \
             data.train_batch_size=64\n",
        ),
        (
            "d.sh",
            "python -m verl.trainer.main_ppo --config-path=$X --config-name=mine \
             data.train_batch_size=64\n",
        ),
        (
            "e.sh",
            "python -m verl.trainer.main_ppo model_engine=megatron data.train_batch_size=64\n",
        ),
        ("f.sh", "python -m recipe.dapo.main_dapo data.train_batch_size=64\n"),
    ]);
    let settings = files.read(&["a.sh"]);
    assert_eq!(settings.library, Some(Library::NemoRl));
    assert!(settings.is_complete && settings.added.contains("policy.x"));
    expect(
        &settings,
        &[("group", json!(8), "base.yaml:1"), ("batch.prompts", json!(16), "a.sh:3")],
    );
    assert!(!files.read(&["b.sh"]).is_complete);
    let settings = files.read(&["c.sh"]);
    assert!(settings.is_complete);
    assert_eq!(settings.call.as_deref(), Some("verl.trainer.main_ppo --config-name mine"));
    expect(
        &settings,
        &[
            ("group", json!(4), "mine.yaml:2"),
            ("batch.prompts", json!(64), "c.sh:1"),
            ("clip.low", json!(0.2), "default"),
        ],
    );
    assert!(!files.read(&["d.sh"]).is_complete);
    let settings = files.read(&["e.sh"]);
    assert!(settings.is_complete && settings.fields.len() == 1);
    assert_eq!(settings.call.as_deref(), Some("verl.trainer.main_ppo model_engine=megatron"));
    assert!(!files.read(&["f.sh"]).is_complete);
}

#[test]
fn a_script_without_training_is_refused() {
    for text in ["echo python -m verl.trainer.main_ppo\n", "python prepare.py --out x\n", "\n"] {
        let error = error("a.sh", text);
        assert!(error.starts_with("/a.sh: expected a command that starts training"), "{error}");
    }
    let twice = "python -m verl.trainer.main_ppo a.b=1\npython -m verl.trainer.main_ppo a.b=2\n";
    let settings = of("a.sh", twice);
    assert_eq!(settings.fields["a.b"].json, json!(1));
    assert_eq!(settings.warnings, ["1 more commands start training: only the first is read"]);
    let inside =
        "srun bash -c \"cd x && python3 -m verl.trainer.main_ppo data.train_batch_size=8\"\n";
    expect(&of("a.sh", inside), &[("batch.prompts", json!(8), "a.sh:1")]);
}

const PYTHON: &str = "\
import os
from trl import GRPOConfig as Config, GRPOTrainer
from peft import LoraConfig

GROUP = 8
BATCH: int = GROUP * 2
TWICE = 1
TWICE = 2
NAME = \"small\"
EXTRA = {\"top_p\": 0.9, \"beta\": 0.04}


def reward_length(completions, **kwargs):
    raise SystemExit(\"nothing of this is run\")


def main(args):
    training_args = Config(
        f\"out/{NAME}-{GROUP}\",
        num_generations=GROUP,
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=int(os.environ.get(\"STEPS\", \"4\")),
        learning_rate=1e-6 * 2,
        max_completion_length=2**10,
        epsilon=args.epsilon,
        num_iterations=TWICE,
        scale_rewards=False,
        reward_weights=[1.0, -0.5],
        **EXTRA,
    )
    training_args.temperature = 0.8
    if args.long:
        training_args.max_steps = 10
    trainer = GRPOTrainer(
        model=\"some/model\",
        reward_funcs=[reward_length, reward_length],
        args=training_args,
        train_dataset=data[\"train\"],
        peft_config=LoraConfig(r=16),
    )
    trainer.train()
";

#[test]
fn a_python_script_gives_its_keywords_and_nothing_of_it_is_run() {
    let settings = of("train.py", PYTHON);
    assert_eq!(
        (settings.library, settings.call.as_deref()),
        (Some(Library::Trl), Some("GRPOConfig"))
    );
    assert!(settings.is_complete && !settings.is_open);
    expect(
        &settings,
        &[
            ("group", json!(8), "train.py:20"),
            ("lr", json!(2e-6), "train.py:23"),
            ("length.completion", json!(1024), "train.py:24"),
            ("advantage.scale", json!("none"), "train.py:27"),
            ("kl.loss", json!(0.04), "train.py:10"),
            ("sampling.top_p", json!(0.9), "train.py:10"),
            ("temperature", json!(0.8), "train.py:31"),
            ("loss.aggregate", json!("token-mean"), "default"),
            ("data.train", json!("data['train']"), "train.py:38"),
            ("lora", json!(true), "train.py:39"),
            unknown("clip.low"),
            unknown("clip.high"),
            unknown("batch.passes"),
            unknown("batch.update"),
        ],
    );
    let unread: Vec<&str> = settings.unread.keys().map(String::as_str).collect();
    assert_eq!(unread, ["epsilon", "max_steps", "num_iterations"]);
    assert_eq!(settings.fields["output_dir"].json, json!("out/small-8"));
    assert_eq!(settings.fields["gradient_accumulation_steps"].json, json!(4));
    assert_eq!(settings.fields["reward_weights"].json, json!([1.0, -0.5]));
    assert_eq!(settings.fields["reward_funcs"].json, json!(["reward_length", "reward_length"]));
    let given = settings.field("save_steps").unwrap();
    assert_eq!((given.json, given.origin), (json!(500), Origin::Default));
}

#[test]
fn what_a_python_script_does_not_tell_is_unknown() {
    let config = |arguments: &str, rest: &str| {
        of("a.py", &format!("import trl\nc = trl.GRPOConfig({arguments})\n{rest}"))
    };
    assert!(config("beta=0.1", "").is_complete);
    assert!(!config("**vars(args)", "").is_complete);
    assert!(!config("*args", "").is_complete);
    assert!(!config("beta=0.1", "setattr(c, name, 1)\n").is_complete);
    let lora = |rest: &str| {
        let settings = config("beta=0.1", rest);
        settings.values.get("lora").map(|value| value.json.clone())
    };
    assert_eq!(lora(""), None);
    assert_eq!(lora("trl.GRPOTrainer(args=c, reward_funcs=[f])\n"), Some(json!(false)));
    assert_eq!(lora("trl.GRPOTrainer(args=c, peft_config=None)\n"), Some(json!(false)));
    assert_eq!(lora("trl.GRPOTrainer(args=c, peft_config=get_peft_config(m))\n"), None);
    assert_eq!(
        lora("p = LoraConfig()\ntrl.GRPOTrainer(args=c, peft_config=p)\n"),
        Some(json!(true))
    );
    assert_eq!(
        lora("m = FastModel.get_peft_model(m, r=8)\ntrl.GRPOTrainer(m, args=c)\n"),
        Some(json!(true))
    );
    // The first call counts, and other libraries' huge powers are not computed.
    let two =
        config("beta=9 ** 9 ** 9, max_steps=10 ** 30, seed='x' * 3", "trl.DPOConfig(beta=1)\n");
    assert_eq!(two.call.as_deref(), Some("GRPOConfig"));
    assert_eq!(two.unread.len(), 3);
    assert!(of("a.py", "c = SFTConfig(max_length=10)\n").is_supervised);
}

#[test]
fn a_python_script_that_is_none_is_refused_with_its_line() {
    assert_eq!(error("a.py", "x = 1\ny = (\n"), "/a.py:2:5: '(' was never closed");
    assert!(error("a.py", "print(1)\n").contains("expected a call of GRPOConfig"));
    assert!(error("a.py", &format!("x = {}1\n", "-".repeat(200_000))).starts_with("/a.py"));
}

#[test]
fn what_only_adds_to_a_configuration_needs_one() {
    let trainer = "GRPOTrainer(args=c, reward_funcs=[f], peft_config=None)\n";
    let files = Files::new(&[
        ("grpo.yaml", GRPO),
        ("train.py", trainer),
        ("overrides.yaml", "- algorithm.adv_estimator=grpo\n- trainer.nnodes=1\n"),
        ("sft.py", "SFTTrainer(args=c, train_dataset=d)\n"),
    ]);
    let settings = files.read(&["train.py"]);
    assert!(!settings.is_complete);
    assert_eq!(settings.call, None);
    let settings = files.read(&["grpo.yaml", "train.py"]);
    assert!(settings.is_complete);
    expect(&settings, &[("lr", json!(2e-5), "grpo.yaml:11"), ("lora", json!(false), "train.py:1")]);
    assert_eq!(settings.fields["reward_funcs"].json, json!(["f"]));
    assert!(!files.read(&["overrides.yaml"]).is_complete);
    assert!(files.read(&["sft.py"]).is_supervised);
}

#[test]
fn other_files_are_not_taken_for_configurations() {
    for text in [
        "name: vllm\ntemperature: 1.0\ntop_p: 1.0\ntop_k: -1\nseed: 1\n",
        "optimizer: AdamW\nlr: 1e-5\nweight_decay: 0.01\n",
        "model: x\ntemperature: 0.7\n",
    ] {
        assert!(error("a.yaml", text).contains("found none"), "{text}");
    }
}

/// Pieces that scripts and files are made of, to be put together at random.
const PIECES: [&str; 40] = [
    "a",
    "1e-6",
    " ",
    "\n",
    "\t",
    "\\\n",
    "'",
    "\"",
    "`",
    "$",
    "${",
    "}",
    "$(",
    ")",
    "((",
    "))",
    "(",
    "A=",
    "B+=(",
    "$A",
    "${A[@]}",
    "${B:-",
    "<<E\n",
    "E\n",
    "if ",
    "fi\n",
    "case x in ",
    ";;",
    "esac",
    "f() {",
    "}\n",
    "&&",
    "|",
    ";",
    "python -m verl.trainer.main_ppo ",
    "a.b=",
    "[1,",
    "{c:",
    "&x ",
    "*x ",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_text_makes_a_reader_panic(
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..60),
        end in proptest::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut bytes = pieces.concat().into_bytes();
        bytes.extend(end);
        fuzz(&bytes);
    }
}

#[test]
fn large_files_are_read_in_time_or_refused() {
    for unit in
        ["$(\"", "${A:-", "((", "A=(\"${A[@]}\" x);", "A=$A$A;", "{ A=1; fi;", "- &a [*a]\n"]
    {
        let begin = std::time::Instant::now();
        fuzz(unit.repeat((1 << 18) / unit.len()).as_bytes());
        assert!(begin.elapsed().as_secs() < 10, "{unit} takes {:?}", begin.elapsed());
    }
    let large = "# a line of a comment\n".repeat(1 << 20);
    for name in ["a.yaml", "a.sh", "a.py", "a.txt"] {
        assert!(error(name, &large).contains("expected at most 16777216 bytes"), "{name}");
    }
}

#[test]
fn without_an_interpreter_a_python_script_is_refused() {
    const MISSING: &str = "no/such/interpreter";
    if std::env::var_os("SHAKEDOWN_PYTHON").is_some_and(|name| name == MISSING) {
        let error = error("a.py", PYTHON);
        assert!(error.contains("cannot start the interpreter no/such/interpreter"), "{error}");
        assert!(error.contains("SHAKEDOWN_PYTHON"), "{error}");
        return;
    }
    // The environment is that of all tests in this process: the test runs itself again.
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "configs::without_an_interpreter_a_python_script_is_refused"])
        .env("SHAKEDOWN_PYTHON", MISSING)
        .output()
        .unwrap();
    // A name that is not listed would end well, having tested nothing.
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn data_sets_of_nemo_have_their_splits() {
    let text = "dpo: {reference_policy_kl_penalty: 0.05}\npolicy: {model_name: x}\ndata:\n  \
                train: {dataset_name: HelpSteer3, split: train}\n  \
                validation: {dataset_name: HelpSteer3, split: validation}\n";
    expect(
        &of("dpo.yaml", text),
        &[
            ("algorithm", json!("dpo"), "default"),
            ("kl.loss", json!(0.05), "dpo.yaml:1"),
            ("data.train", json!("HelpSteer3 (train)"), "dpo.yaml:4"),
            ("data.eval", json!("HelpSteer3 (validation)"), "dpo.yaml:5"),
        ],
    );
}

#[test]
fn what_yaml_merges_counts_unless_it_is_set_beside() {
    let text = "\
base: &base
  lr: 1e-6
  weight_decay: 0.1
actor_rollout_ref:
  actor:
    optim:
      <<: *base
      weight_decay: 0.0
  rollout: {n: 4}
";
    let settings = of("a.yaml", text);
    let field =
        |name: &str| settings.fields[&format!("actor_rollout_ref.actor.optim.{name}")].json.clone();
    assert_eq!((field("lr"), field("weight_decay")), (json!(1e-6), json!(0.0)));
    expect(&settings, &[("lr", json!(1e-6), "a.yaml:2"), ("group", json!(4), "a.yaml:9")]);
}
