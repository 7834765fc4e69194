//! Which library a configuration is taken for: by a name that this one alone has, and never by
//! names that many have.

use std::fs;

use serde_json::json;
use shakedown_lint::report::{RuleStatus, Severity, Subject, Verdict};
use shakedown_lint::rules::Asked;
use shakedown_lint::settings::formats::{Given, from_json, read_as};
use shakedown_lint::settings::{Library, Settings};
use tempfile::TempDir;

/// The settings of one file, as the library that is named.
fn of_as(library: Option<&str>, name: &str, text: &str) -> Settings {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    let given = Given { library, call: None };
    read_as(&[path], given, None, None, &[]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn of(name: &str, text: &str) -> Settings {
    of_as(None, name, text)
}

fn judged(settings: &Settings) -> Subject {
    settings.judge(&Asked::default())
}

/// The findings above a note, each in a line.
fn alarms(settings: &Settings) -> Vec<String> {
    let findings = judged(settings).findings.into_iter();
    let above = findings.filter(|one| one.severity > Severity::Note);
    above.map(|one| format!("{}: {}", one.rule, one.found)).collect()
}

fn status(settings: &Settings, rule: &str) -> RuleStatus {
    judged(settings).rules.iter().find(|one| one.id == rule).unwrap().status
}

/// Files of other libraries, made after their examples: the file, the library, what is in it.
const OTHERS: [(&str, &str, &str); 19] = [
    ("a.yaml", "EasyR1", "worker: {rollout: {n: 5}}\nalgorithm: {adv_estimator: grpo}\n"),
    (
        "config.yaml",
        "EasyR1",
        "data: {max_prompt_length: 2048, max_response_length: 2048, rollout_batch_size: 512}\n\
         algorithm: {adv_estimator: grpo, kl_penalty: low_var_kl, kl_coef: 1.0e-2}\n\
         worker:\n  actor: {global_batch_size: 128, optim: {lr: 1.0e-6}}\n  rollout: {n: 5}\n\
         trainer: {total_epochs: 15, n_gpus_per_node: 8}\n",
    ),
    (
        "easy.sh",
        "EasyR1",
        "python3 -m verl.trainer.main config=config.yaml data.train_files=org/sums@train \\\n  \
         algorithm.adv_estimator=grpo trainer.n_gpus_per_node=8\n",
    ),
    (
        "sft.yaml",
        "LLaMA-Factory",
        "stage: sft\nfinetuning_type: lora\nlora_rank: 8\nlearning_rate: 1.0e-4\n",
    ),
    (
        "dpo.yaml",
        "LLaMA-Factory",
        "model_name_or_path: org/small\nstage: dpo\nfinetuning_type: full\npref_beta: 0.1\n\
         pref_loss: sigmoid\ncutoff_len: 2048\nlearning_rate: 5.0e-4\noutput_dir: saves\n\
         per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n",
    ),
    (
        "axolotl.yaml",
        "axolotl",
        "base_model: org/small\nrl: grpo\ntrl:\n  beta: 0.001\n  num_generations: 4\n\
         sequence_len: 1024\nsample_packing: false\nmicro_batch_size: 1\nlearning_rate: 2e-4\n\
         gradient_accumulation_steps: 1\nmax_steps: 100\nadapter: lora\n",
    ),
    (
        "gsm8k_grpo.yaml",
        "AReaL",
        "experiment_name: sums\ntotal_train_epochs: 10\ncluster: {n_nodes: 1}\n\
         gconfig: {n_samples: 4, max_new_tokens: 1024, temperature: 1.0}\n\
         rollout: {max_concurrent_rollouts: 256}\nvllm: {model: x}\n\
         actor: {optimizer: {lr: 1.7e-5}, eps_clip: 0.4, kl_ctl: 0.0}\n",
    ),
    (
        "rlvr_config.yaml",
        "ROLL",
        "exp_name: sums\nsave_steps: 100\nlogging_steps: 1\nmax_steps: 500\n\
         rollout_batch_size: 64\nadv_estimator: reinforce\nresponse_length: 4096\n\
         num_return_sequences_in_group: 8\nppo_epochs: 1\nwhiten_advantages: true\n\
         actor_train: {training_args: {learning_rate: 1.0e-6}}\n\
         actor_infer: {generating_args: {temperature: 0.99}}\n",
    ),
    (
        "grpo_fast.sh",
        "open-instruct",
        "python open_instruct/grpo_fast.py --exp_name sums --beta 0.0 --learning_rate 5e-7 \\\n  \
         --num_unique_prompts_rollout 48 --num_samples_per_prompt_rollout 16 \\\n  \
         --kl_estimator 2 --response_length 4096 --per_device_train_batch_size 1\n",
    ),
    (
        "maniskill.yaml",
        "RLinf",
        "defaults: [env/x@env.train]\ncluster:\n  component_placement: {actor: 0-7}\n\
         runner: {task_type: reasoning, max_epochs: 20}\n\
         algorithm: {adv_type: grpo, group_size: 8, clip_ratio_high: 0.28}\n\
         data: {max_prompt_length: 1024}\nactor: {optim: {lr: 2.0e-4}}\ncritic: {use: false}\n",
    ),
    (
        "swift.sh",
        "ms-swift",
        "python swift/cli/rlhf.py --rlhf_type grpo --num_generations 1 --learning_rate 1e-3 \\\n  \
         --max_completion_length 512 --per_device_train_batch_size 2\n",
    ),
    (
        "sky.yaml",
        "SkyRL",
        "data: {train_data: [x]}\ntrainer:\n  algorithm: {advantage_estimator: grpo}\n  \
         policy: {optimizer_config: {lr: 1.0e-6}}\ngenerator: {n_samples_per_prompt: 5}\n",
    ),
    (
        "tune.yaml",
        "torchtune",
        "model: {_component_: torchtune.models.small}\nlearning_rate: 1e-3\nmax_steps: 10\n\
         gradient_accumulation_steps: 1\noutput_dir: /tmp/x\n",
    ),
    // A course: common names, and none that one library alone has.
    (
        "course.yaml",
        "unknown",
        "learning_rate: 1.0e-3\nn_grpo_steps: 200\nrollout_batch_size: 256\ngroup_size: 1\n\
         gradient_accumulation_steps: 128\ncliprange: 0.2\nloss_type: grpo_clip\n",
    ),
    ("two.yaml", "unknown", "beta: 2.0\nlearning_rate: 1.0e-3\nvocab: 5\n"),
    (
        "own.py",
        "own configuration",
        "from dataclasses import dataclass\n\n@dataclass\nclass GRPOConfig:\n    \
         epsilon_low: float = 0.2\n    d_model: int = 64\n\n\
         config = GRPOConfig(epsilon_low=0.9, d_model=64, num_generations=1, learning_rate=1.0)\n",
    ),
    (
        "package.py",
        "own configuration",
        "from .config import GRPOConfig\nc = GRPOConfig(num_generations=1, beta=5.0, heads=8)\n",
    ),
    (
        "ray.py",
        "own configuration",
        "import ray.rllib.algorithms.ppo as p\nc = p.PPOConfig(gamma=0.5, lr=1.0, clip_param=3)\n",
    ),
    (
        "script.sh",
        "unknown",
        "torchrun train.py --learning_rate 1e-3 --beta 5 --per_device_train_batch_size 4\n",
    ),
];

#[test]
fn files_of_other_libraries_are_not_judged_as_those_that_are_known() {
    for (name, library, text) in OTHERS {
        let settings = of(name, text);
        let subject = judged(&settings);
        assert_eq!(subject.library.as_deref(), Some(library), "{name}");
        assert_eq!((settings.library, subject.library_version), (None, None), "{name}");
        assert_eq!(alarms(&settings), [""; 0], "{name}");
        assert_eq!(status(&settings, "unknown-field"), RuleStatus::Insufficient, "{name}");
        assert_ne!(subject.verdict, Verdict::NothingFound, "{name}: too few rules are judged");
    }
}

#[test]
fn rules_that_need_no_library_are_judged_for_every_one() {
    for (name, _, text) in OTHERS {
        let settings = of(name, text);
        if settings.format == "YAML" {
            let settings = of(name, &format!("{text}bf16: true\nfp16: true\n"));
            assert_eq!(alarms(&settings).len(), 1, "{name}");
            assert_eq!(status(&settings, "contradiction"), RuleStatus::Fires, "{name}");
        }
        assert_ne!(status(&settings, "contradiction"), RuleStatus::Insufficient, "{name}");
    }
}

/// A script of Search-R1's, which starts verl's module with fields of its own.
const SEARCH: &str = "\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=512 \\
    data.max_start_length=2048 data.max_response_length=500 \\
    actor_rollout_ref.rollout.n_agent=5 actor_rollout_ref.actor.state_masking=true \\
    actor_rollout_ref.actor.optim.lr=1e-6 actor_rollout_ref.actor.ppo_mini_batch_size=256
";

/// One that has fields which verl never had.
const STRANGE: &str = "\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=512 \\
    trainer.hops=2 trainer.memory_size=8 data.documents=docs.jsonl \\
    actor_rollout_ref.actor.ppo_mini_batch_size=256
";

#[test]
fn forks_are_judged_by_what_they_set_and_not_by_defaults() {
    for (text, name) in [(SEARCH, "Search-R1"), (STRANGE, "fork of verl")] {
        let settings = of("run.sh", text);
        assert_eq!(settings.library, Some(Library::Verl), "{name}");
        assert_eq!((settings.name(), settings.version()), (name.to_owned(), None));
        assert!(!settings.is_complete, "{name}");
        // verl's default is a group of one.
        assert_eq!(status(&settings, "group-of-one"), RuleStatus::Insufficient, "{name}");
        assert_eq!(alarms(&settings), [""; 0], "{name}");
        let larger = of("run.sh", &text.replace("=256", "=1024"));
        assert_eq!(
            alarms(&larger),
            ["mini-batch-too-large: an update takes 1024 rows of a batch \
                                       of 512"]
        );
    }
    // Two strange fields may be misspelt ones.
    let misspelt = STRANGE.replace(" data.documents=docs.jsonl", "");
    assert_eq!(status(&of("run.sh", &misspelt), "unknown-field"), RuleStatus::Fires);
    let added = STRANGE.replace(" trainer.", " +trainer.").replace(" data.doc", " +data.doc");
    assert_eq!(of("run.sh", &added).name(), "verl");
}

#[test]
fn the_defaults_of_verl_need_its_own_sections() {
    let sections = "algorithm: {adv_estimator: grpo, gamma: 1.0}\ndata: {train_batch_size: 64}\n";
    let settings = of("base.yaml", sections);
    assert_eq!((settings.library, settings.is_complete), (Some(Library::Verl), false));
    assert_eq!(alarms(&settings), [""; 0]);
    for whole in [
        format!("{sections}actor_rollout_ref: {{actor: {{ppo_mini_batch_size: 64}}}}\n"),
        format!("defaults: [ppo_trainer, _self_]\n{sections}"),
    ] {
        let settings = of("whole.yaml", &whole);
        assert!(settings.is_complete, "{:?}", settings.warnings);
        assert_eq!(status(&settings, "group-of-one"), RuleStatus::Fires);
    }
    // What is built on verl's trainer needs no other name.
    let built = of("built.yaml", "defaults: [ppo_trainer, _self_]\ntrainer: {nnodes: 2}\n");
    assert_eq!((built.library, built.is_complete), (Some(Library::Verl), true));
}

#[test]
fn unsloth_has_fields_and_defaults_of_its_own() {
    let text = "from trl import GRPOConfig, GRPOTrainer\n\
                args = GRPOConfig(vllm_sampling_params=p, num_generations=8, learning_rate=5e-6)\n";
    for text in [text.to_owned(), format!("from unsloth import FastLanguageModel\n{text}")] {
        let settings = of("train.py", &text);
        assert_eq!((settings.library, &*settings.name()), (Some(Library::Trl), "unsloth"));
        assert_eq!(alarms(&settings), [""; 0]);
        assert_eq!(settings.number("group"), Some(8.0));
        assert!(!settings.values.contains_key("kl.loss"), "that would be TRL's default");
    }
    let plain = text.replace("vllm_sampling_params", "vllm_sampling_parameters");
    assert_eq!(status(&of("train.py", &plain), "unknown-field"), RuleStatus::Fires);
}

#[test]
fn a_class_is_trls_by_its_module() {
    let arguments = "(num_generations=1, learning_rate=1e-6)\n";
    for (text, is_trl) in [
        ("from trl import GRPOConfig\nc = GRPOConfig", true),
        ("from trl.trainer.grpo_config import GRPOConfig\nc = GRPOConfig", true),
        ("import trl as t\nc = t.GRPOConfig", true),
        ("from trl import *\nc = GRPOConfig", true),
        // A part of a script.
        ("c = GRPOConfig", true),
        ("from config import *\nc = GRPOConfig", false),
        ("import config\nc = config.GRPOConfig", false),
        ("class GRPOConfig(dict): pass\nc = GRPOConfig", false),
    ] {
        let settings = of("a.py", &format!("{text}{arguments}"));
        assert_eq!(settings.library == Some(Library::Trl), is_trl, "{text}");
        assert_eq!(status(&settings, "group-of-one") == RuleStatus::Fires, is_trl, "{text}");
        let is_said = settings.warnings.iter().any(|one| one.ends_with("not of TRL"));
        assert_eq!(is_said, !is_trl, "{text}: {:?}", settings.warnings);
    }
}

#[test]
fn the_library_that_is_named_decides() {
    let group = "group_size: 8\nlearning_rate: 1.0e-3\nnum_generations: 1\n";
    let settings = of("a.yaml", group);
    assert_eq!(settings.library, Some(Library::Trl));
    let unknown = of_as(Some("unknown"), "a.yaml", group);
    assert_eq!((unknown.library, &*unknown.name()), (None, "unknown"));
    assert_eq!(alarms(&unknown), [""; 0]);
    let own = "class GRPOConfig(dict): pass\nc = GRPOConfig(num_generations=1)\n";
    for name in ["trl", "TRL"] {
        let named = of_as(Some(name), "a.py", own);
        assert_eq!((named.library, named.version()), (Some(Library::Trl), settings.version()));
        assert_eq!(status(&named, "group-of-one"), RuleStatus::Fires);
    }
    // A fork that is known to have the defaults and fields of verl.
    let named = of_as(Some("verl"), "run.sh", STRANGE);
    assert_eq!((named.name(), named.is_complete), ("verl".to_owned(), true));
    assert_eq!(status(&named, "group-of-one"), RuleStatus::Fires);
    assert_eq!(status(&named, "unknown-field"), RuleStatus::Fires);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, group).unwrap();
    let given = Given { library: Some("trll"), call: None };
    let error = read_as(&[path], given, None, None, &[]).unwrap_err().to_string();
    assert!(error.contains("did you mean `trl`"), "{error}");
}

#[test]
fn reports_name_the_library_and_its_version() {
    for (name, text, library, version) in [
        ("a.yaml", "actor_rollout_ref: {rollout: {n: 8}}\n", "verl", Some("verl 0.10.0.dev")),
        ("a.py", "c = DPOConfig(beta=0.1)\n", "trl", Some("trl 1.10.0.dev0")),
        ("a.yaml", "grpo: {num_prompts_per_step: 8}\n", "NeMo-RL", Some("NeMo-RL")),
        ("a.yaml", "beta: 1\nmax_steps: 1\n", "unknown", Some("unknown library")),
        ("run.sh", SEARCH, "Search-R1", Some("Search-R1")),
    ] {
        let subject = judged(&of(name, text));
        assert_eq!(subject.library.as_deref(), Some(library));
        assert_eq!(subject.of_library().as_deref(), version);
    }
    let json = serde_json::to_value(judged(&of("a.py", "c = DPOConfig(beta=0.1)\n"))).unwrap();
    assert_eq!(json["library_version"], json!("1.10.0.dev0"));
    let warnings = of("a.yaml", "beta: 1\nmax_steps: 1\n").warnings;
    assert_eq!(warnings, ["the library is not known: --library names it"]);
}

#[test]
fn what_is_given_by_hand_is_judged_for_an_unknown_library() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.yaml");
    fs::write(&path, "learning_rate: 1.0e-6\nmax_steps: 10\nsiblings: 1\n").unwrap();
    let set = [("group", "1"), ("algorithm", "grpo")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let settings = read_as(&[path], Given::default(), None, None, &set).unwrap();
    assert_eq!(status(&settings, "group-of-one"), RuleStatus::Fires);
}

#[test]
fn the_learning_rate_of_supervised_training_is_not_judged() {
    for (name, text) in [
        ("sft.yaml", "packing: true\nmax_length: 2048\nlearning_rate: 1.0e-3\n"),
        ("a.yaml", "dataset_num_proc: 8\nmodel_name_or_path: x\nlearning_rate: 1.0e-3\n"),
        ("a.yaml", "dataset_num_proc: 8\nuse_peft: true\nlearning_rate: 5.0e-3\nmax_steps: 9\n"),
        ("a.sh", "python examples/scripts/sft.py --model_name_or_path x --learning_rate 2e-4\n"),
        ("a.sh", "trl sft --model_name_or_path x --learning_rate 5e-3 --use_peft\n"),
        ("a.py", "from trl import SFTConfig\nc = SFTConfig(learning_rate=5e-3)\n"),
    ] {
        let settings = of(name, text);
        assert_eq!(alarms(&settings), [""; 0], "{text}");
        assert_ne!(status(&settings, "learning-rate"), RuleStatus::Quiet, "{text}");
    }
    let rl = "dataset_num_proc: 8\nmodel_name_or_path: x\nlearning_rate: 1.0e-3\nbeta: 0.1\n\
              max_prompt_length: 5\nf_divergence_type: a\n";
    assert_eq!(status(&of("dpo.yaml", rl), "learning-rate"), RuleStatus::Fires);
    // 0 is right for nothing.
    let zero = "dataset_num_proc: 8\nmodel_name_or_path: x\nlearning_rate: 0\n";
    assert_eq!(status(&of("a.yaml", zero), "learning-rate"), RuleStatus::Fires);
}

#[test]
fn a_launcher_of_which_little_is_known_is_not_found_to_be_well() {
    let launcher = "from trl import GRPOConfig, GRPOTrainer, TrlParser\n\
                    args, = TrlParser((GRPOConfig,)).parse_args_and_config()\n\
                    trainer = GRPOTrainer(model='org/small', args=args, reward_funcs=[f])\n";
    let subject = judged(&of("launch.py", launcher));
    assert!(subject.judged() > 0, "some rules are judged");
    assert_eq!(subject.verdict, Verdict::Insufficient);
    let known = "from trl import GRPOConfig\nc = GRPOConfig(num_generations=8)\n";
    assert_eq!(judged(&of("known.py", known)).verdict, Verdict::NothingFound);
}

#[test]
fn a_dictionary_of_common_names_is_of_no_known_library() {
    let fields = json!({"learning_rate": 1e-3, "beta": 2.0, "output_dir": "x"});
    let settings = from_json(&fields, None).unwrap();
    assert_eq!((settings.library, alarms(&settings)), (None, vec![]));
    let settings = from_json(&fields, Some("DPOConfig")).unwrap();
    assert_eq!(settings.library, Some(Library::Trl));
    // An object of a class of that name, which is the user's own.
    let own = json!({
        "epsilon_low": 0.9, "d_model": 64, "heads": 4, "learning_rate": 1.0, "num_generations": 1,
    });
    let settings = from_json(&own, Some("GRPOConfig")).unwrap();
    assert_eq!((settings.library, &*settings.name()), (None, "own configuration"));
    assert_eq!(alarms(&settings), [""; 0]);
    let few = json!({"num_generations": 1, "learning_rate": 1e-6, "heads": 4});
    let settings = from_json(&few, Some("GRPOConfig")).unwrap();
    assert_eq!(settings.library, Some(Library::Trl));
}
