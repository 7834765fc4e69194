//! Every rule about configurations fires at the line that is wrong, and not at its neighbour.

use std::collections::BTreeSet;
use std::fs;

use shakedown_lint::report::{Finding, RuleStatus, Severity, Subject};
use shakedown_lint::rules::Asked;
use shakedown_lint::settings::formats::read;
use shakedown_lint::settings::rules;
use tempfile::TempDir;

/// A sound configuration: the name of its file, and the file.
type Sound = (&'static str, &'static str);

const VERL: Sound = (
    "run.sh",
    r#"#!/bin/bash
set -x
response=4096
files=(
    data.train_files=/data/sums/train.parquet
    data.val_files=/data/sums/held_out.parquet
)
python3 -m verl.trainer.main_ppo "${files[@]}" \
    algorithm.adv_estimator=grpo \
    algorithm.use_kl_in_reward=False \
    data.train_batch_size=256 \
    data.max_prompt_length=1024 \
    data.max_response_length=$response \
    actor_rollout_ref.model.path=/models/small \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
    actor_rollout_ref.actor.use_kl_loss=True \
    actor_rollout_ref.actor.kl_loss_coef=0.001 \
    actor_rollout_ref.actor.kl_loss_type=low_var_kl \
    actor_rollout_ref.actor.clip_ratio_low=0.2 \
    actor_rollout_ref.actor.clip_ratio_high=0.28 \
    actor_rollout_ref.actor.entropy_coeff=0 \
    actor_rollout_ref.actor.loss_agg_mode=token-mean \
    actor_rollout_ref.actor.grad_clip=1.0 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.temperature=1.0 \
    actor_rollout_ref.rollout.top_p=1.0 \
    actor_rollout_ref.rollout.top_k=-1 \
    actor_rollout_ref.rollout.ignore_eos=False \
    actor_rollout_ref.rollout.max_model_len=5120 \
    trainer.n_gpus_per_node=8 \
    trainer.nnodes=1 \
    trainer.save_freq=20
"#,
);

const TRL: Sound = (
    "train.py",
    r#"from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(
    output_dir="sums",
    learning_rate=1e-6,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=4,
    num_generations=8,
    max_completion_length=1024,
    loss_type="dr_grpo",
    scale_rewards="none",
    reward_weights=[1.0, 0.5],
    remove_unused_columns=False,
    bf16=True,
    fp16=False,
    max_steps=500,
    logging_steps=10,
)
trainer = GRPOTrainer(
    model="org/small",
    args=args,
    reward_funcs=[is_right, has_form],
    train_dataset=rows,
    peft_config=None,
)
trainer.train()
"#,
);

const DPO: Sound = (
    "preferences.py",
    r#"from trl import DPOConfig, DPOTrainer

args = DPOConfig(
    output_dir="preferences",
    learning_rate=5e-7,
    beta=0.1,
)
trainer = DPOTrainer(model="org/small", args=args, train_dataset=rows)
"#,
);

const NEMO: Sound = (
    "grpo.yaml",
    r#"grpo:
  num_prompts_per_step: 32
  num_generations_per_prompt: 16
  max_num_steps: 1000
  adv_estimator:
    name: grpo
    normalize_rewards: true
  async_grpo:
    enabled: true
loss_fn:
  reference_policy_kl_penalty: 0.01
  reference_policy_kl_type: k3
  ratio_clip_min: 0.2
  ratio_clip_max: 0.28
  use_importance_sampling_correction: true
  token_level_loss: true
policy:
  model_name: org/small
  train_global_batch_size: 512
  train_micro_batch_size: 4
  max_total_sequence_length: 16384
  max_grad_norm: 1.0
  optimizer:
    name: torch.optim.AdamW
    kwargs:
      lr: 5.0e-7
  generation:
    backend: vllm
    max_new_tokens: 8192
    temperature: 1.0
checkpointing:
  enabled: true
  save_period: 10
cluster:
  gpus_per_node: 8
  num_nodes: 1
"#,
);

const OPENRLHF: Sound = (
    "ppo.sh",
    r"python3 -m openrlhf.cli.train_ppo_ray \
    --actor.model_name_or_path org/small \
    --algo.advantage.estimator gae \
    --algo.advantage.gamma 1.0 \
    --rollout.batch_size 128 \
    --rollout.n_samples_per_prompt 1 \
    --train.batch_size 128
",
);

const OPENRLHF_DPO: Sound = (
    "dpo.sh",
    r"deepspeed --module openrlhf.cli.train_dpo \
    --model.model_name_or_path org/small \
    --ref.model_name_or_path org/small \
    --model.beta 0.1 \
    --adam.lr 5e-7 \
    --train.batch_size 256
",
);

const SLIME: Sound = (
    "train.sh",
    r#"ROLLOUT=(
    --rollout-batch-size 32
    --n-samples-per-prompt 8
    --global-batch-size 256
    --rollout-max-response-len 4096
)
TRAIN=(
    --advantage-estimator grpo
    --lr 1e-6
    --attention-dropout 0.0
    --hidden-dropout 0.0
    --use-dynamic-batch-size
    --max-tokens-per-gpu 8192
)
python3 train.py "${ROLLOUT[@]}" "${TRAIN[@]}"
"#,
);

const SOUND: [Sound; 7] = [VERL, TRL, DPO, NEMO, OPENRLHF, OPENRLHF_DPO, SLIME];

use Severity::{Error, Note, Warning};

/// A rule; a sound configuration; what one of its lines says; what it says instead that is still
/// sound; what it says that is not; how bad that is.
type Row = (&'static str, Sound, &'static str, &'static str, &'static str, Severity);

/// All rules: a row for each severity, with the neighbour at the limit.
const ROWS: [Row; 69] = [
    ("group-of-one", VERL, "rollout.n=8", "rollout.n=4", "rollout.n=1", Error),
    ("group-of-two", VERL, "rollout.n=8", "rollout.n=4", "rollout.n=2", Warning),
    ("group-of-two", VERL, "rollout.n=8", "rollout.n=4", "rollout.n=3", Note),
    ("batch-not-divisible", VERL, "batch_size=64", "batch_size=32", "batch_size=48", Warning),
    ("batch-not-divisible", VERL, "per_node=8", "per_node=4", "per_node=6", Error),
    ("batch-not-divisible", SLIME, "size 256", "size 128", "size 250", Error),
    ("batch-not-divisible", TRL, "batch_size=4", "batch_size=2", "batch_size=3", Warning),
    ("batch-not-divisible", NEMO, "size: 512", "size: 256", "size: 500", Warning),
    ("mini-batch-too-large", VERL, "batch_size=64", "batch_size=256", "batch_size=512", Error),
    ("mini-batch-too-large", SLIME, "size 256", "size 128", "size 512", Error),
    ("off-policy", VERL, "batch_size=64", "batch_size=16", "batch_size=8", Note),
    ("off-policy", VERL, "batch_size=64", "batch_size=16", "batch_size=2", Warning),
    ("learning-rate", VERL, "lr=1e-6", "lr=1e-5", "lr=2e-5", Warning),
    ("learning-rate", VERL, "lr=1e-6", "lr=1e-5", "lr=2e-4", Error),
    ("learning-rate", VERL, "lr=1e-6", "lr=1e-7", "lr=0", Error),
    ("learning-rate", TRL, "rate=1e-6", "rate=5e-6", "rate=-1e-6", Error),
    ("learning-rate", OPENRLHF_DPO, "lr 5e-7", "lr 1e-5", "lr 5e-5", Warning),
    ("learning-rate", NEMO, "lr: 5.0e-7", "lr: 1.0e-5", "lr: 2.0e-5", Warning),
    ("kl-coefficient", NEMO, "penalty: 0.01", "penalty: 0.19", "penalty: 0.2", Warning),
    ("kl-coefficient", NEMO, "penalty: 0.01", "penalty: 0.0", "penalty: 1.0", Error),
    ("kl-coefficient", NEMO, "penalty: 0.01", "penalty: 0.0", "penalty: -0.01", Error),
    ("kl-coefficient", DPO, "beta=0.1", "beta=1.0", "beta=2.0", Warning),
    ("kl-coefficient", DPO, "beta=0.1", "beta=0.01", "beta=0.0", Error),
    ("kl-coefficient", DPO, "beta=0.1", "beta=2.0, loss_type='sigmoid_norm'", "beta=2.0", Warning),
    ("kl-twice", VERL, "in_reward=False", "in_reward=false", "in_reward=True", Warning),
    ("kl-without-effect", VERL, "loss_coef=0.001", "loss_coef=0.01", "loss_coef=0", Note),
    ("kl-estimator", VERL, "type=low_var_kl", "type=k2", "type=kl", Warning),
    ("clip-range", VERL, "high=0.28", "high=0.5", "high=0.6", Warning),
    ("clip-range", VERL, "high=0.28", "high=0.2", "high=0.1", Warning),
    ("clip-range", VERL, "high=0.28", "high=0.5", "high=1.0", Error),
    ("clip-range", VERL, "low=0.2", "low=0.01", "low=0", Error),
    ("clip-range", NEMO, "max: 0.28", "max: 0.2", "max: 28", Error),
    ("temperature", VERL, "rature=1.0", "rature=0.3", "rature=0", Error),
    ("temperature", VERL, "rature=1.0", "rature=0.3", "rature=0.2", Warning),
    ("temperature", VERL, "rature=1.0", "rature=1.5", "rature=1.6", Warning),
    ("sampling-filter", VERL, "top_p=1.0", "top_p=1", "top_p=0.95", Warning),
    ("sampling-filter", VERL, "top_k=-1", "top_k=0", "top_k=50", Warning),
    ("lengths", VERL, "length=$response", "length=4095", "length=4097", Error),
    ("lengths", NEMO, "tokens: 8192", "tokens: 16384", "tokens: 16385", Error),
    ("lengths", SLIME, "len 4096", "len 8192", "len 8193", Note),
    ("half-dr-grpo", TRL, "rewards=\"none\"", "rewards=False", "rewards=\"group\"", Warning),
    ("loss-is-a-sum", VERL, "=token-mean", "=seq-mean-token-mean", "=token-sum", Warning),
    ("length-bias", NEMO, "level_loss: true", "level_loss: True", "level_loss: false", Note),
    (
        "entropy-coefficient",
        VERL,
        "entropy_coeff=0",
        "entropy_coeff=0.01",
        "entropy_coeff=0.02",
        Warning,
    ),
    (
        "entropy-coefficient",
        VERL,
        "entropy_coeff=0",
        "entropy_coeff=0.001",
        "entropy_coeff=0.2",
        Error,
    ),
    (
        "entropy-coefficient",
        VERL,
        "entropy_coeff=0",
        "entropy_coeff=0.001",
        "entropy_coeff=-0.01",
        Error,
    ),
    ("gradient-clipping", VERL, "grad_clip=1.0", "grad_clip=10", "grad_clip=11", Warning),
    ("gradient-clipping", VERL, "grad_clip=1.0", "grad_clip=0.1", "grad_clip=0", Warning),
    ("gradient-clipping", NEMO, "norm: 1.0", "norm: 0.5", "norm: null", Warning),
    ("gradient-clipping", VERL, "grad_clip=1.0", "grad_clip=0.01", "grad_clip=0.001", Note),
    ("discount", OPENRLHF, "gamma 1.0", "gamma 0.99", "gamma 0.95", Warning),
    ("columns-removed", TRL, "columns=False", "columns=0", "columns=True", Warning),
    ("reward-weights", TRL, "[1.0, 0.5]", "[2.0, 1.0]", "[1.0]", Error),
    ("reward-weights", TRL, "[1.0, 0.5]", "[2.0, 1.0]", "[1.0, 0.5, 0.5]", Error),
    ("contradiction", TRL, "fp16=False", "tf32=True", "fp16=True", Error),
    ("invalid-value", TRL, "max_steps=500", "max_steps=400", "max_steps=None", Error),
    ("invalid-value", TRL, "\"dr_grpo\"", "\"dapo\"", "\"gpro\"", Error),
    ("invalid-value", VERL, "=low_var_kl", "=k3+", "=k4", Error),
    ("unknown-field", TRL, "logging_steps", "eval_steps", "loging_steps", Error),
    ("unknown-field", TRL, "max_completion_length", "logging_steps", "max_prompt_length", Warning),
    ("unknown-field", VERL, "actor.grad_clip", "actor.ppo_epochs", "actor.grad_clp", Error),
    ("end-ignored", VERL, "eos=False", "eos=false", "eos=True", Error),
    (
        "dropout",
        SLIME,
        "attention-dropout 0.0",
        "attention-dropout 0",
        "attention-dropout 0.1",
        Error,
    ),
    (
        "asynchronous-without-correction",
        NEMO,
        "correction: true",
        "correction: True",
        "correction: false",
        Error,
    ),
    (
        "rollout-uncorrected",
        NEMO,
        "correction: true",
        "correction: True",
        "correction: false",
        Note,
    ),
    ("validated-on-training-data", VERL, "held_out", "test", "train", Warning),
    (
        "reference-differs",
        OPENRLHF_DPO,
        "ref.model_name_or_path org/small",
        "ref.model_name_or_path org/small/",
        "ref.model_name_or_path org/smaller",
        Warning,
    ),
    ("nothing-saved", VERL, "save_freq=20", "save_freq=1", "save_freq=-1", Note),
    ("logged-rarely", TRL, "logging_steps=10", "logging_steps=25", "logging_steps=100", Note),
];

fn judged((name, text): (&str, &str)) -> Subject {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    let settings = read(&[path], None, None, &[]).unwrap_or_else(|error| panic!("{error}"));
    settings.judge(&Asked { only: Vec::new(), skip: Vec::new() })
}

/// The findings above a note.
fn alarms(subject: &Subject) -> Vec<&Finding> {
    subject.findings.iter().filter(|one| one.severity > Note).collect()
}

/// What became of a rule.
fn status(subject: &Subject, rule: &str) -> RuleStatus {
    subject.rules.iter().find(|one| one.id == rule).unwrap().status
}

#[test]
fn sound_configurations_raise_no_alarm_and_are_judged() {
    for sound in SOUND {
        let subject = judged(sound);
        assert!(alarms(&subject).is_empty(), "{}: {:#?}", sound.0, subject.findings);
        let quiet = subject.rules.iter().filter(|one| one.status == RuleStatus::Quiet).count();
        assert!(quiet >= 8, "{}: only {quiet} rules are judged", sound.0);
    }
}

#[test]
fn every_rule_fires_at_the_wrong_line_and_not_at_its_neighbour() {
    let mut wrong = Vec::new();
    for (rule, (name, text), from, good, bad, severity) in ROWS {
        assert_eq!(text.matches(from).count(), 1, "{rule}: `{from}` in {name}");
        let quiet = judged((name, &text.replace(from, good)));
        if status(&quiet, rule) != RuleStatus::Quiet && !is_exempt(good) {
            wrong.push(format!("{rule}: `{good}` is {:?}", status(&quiet, rule)));
        }
        if let Some(loud) = alarms(&quiet).iter().find(|one| one.rule == rule) {
            wrong.push(format!("{rule}: `{good}` is an alarm: {}", loud.found));
        }
        let subject = judged((name, &text.replace(from, bad)));
        let line = text[..text.find(from).unwrap()].matches('\n').count() as u64 + 1;
        wrong.extend(
            missed(&subject, rule, severity, line)
                .map(|why| format!("{rule}: `{bad}` {why}; found {:#?}", told(&subject))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Why a finding is not as it should be: there, as bad, at the line, and among the first two.
fn missed(subject: &Subject, rule: &str, severity: Severity, line: u64) -> Option<String> {
    let Some(at) = subject.findings.iter().position(|one| one.rule == rule) else {
        return Some(format!("is {:?}", status(subject, rule)));
    };
    let found = &subject.findings[at];
    let found_line = found.location.as_ref().map(|location| location.line as u64);
    if found.severity != severity || found_line != Some(line) {
        return Some(format!("expected {severity:?} at line {line}"));
    }
    let louder = subject.findings[..at].iter().filter(|one| one.severity >= severity).count();
    (louder > 1).then(|| format!("is finding {}", louder + 1))
}

/// Each finding in a line.
fn told(subject: &Subject) -> Vec<String> {
    let line = |one: &Finding| one.location.as_ref().map(|location| location.line);
    let findings = subject.findings.iter();
    findings
        .map(|one| format!("{} {:?} {:?} {}", one.rule, one.severity, line(one), one.found))
        .collect()
}

/// Neighbours of which the rule does not speak.
fn is_exempt(good: &str) -> bool {
    good.contains("sigmoid_norm")
}

#[test]
fn every_rule_of_the_list_is_in_the_table() {
    let tried: BTreeSet<&str> = ROWS.iter().map(|row| row.0).collect();
    let listed: BTreeSet<&str> = rules::all().iter().map(|rule| rule.id).collect();
    assert_eq!(tried, listed);
}

#[test]
fn settings_that_cannot_be_read_are_insufficient() {
    let (name, text) = TRL;
    let subject = judged((name, &text.replace("rate=1e-6", "rate=chosen()")));
    assert_eq!(status(&subject, "learning-rate"), RuleStatus::Insufficient);
    assert_eq!(status(&subject, "temperature"), RuleStatus::Quiet, "that is a default");
    // Nothing is known of what is not set, where more is given than can be read.
    let subject = judged((name, &text.replace("rate=1e-6,", "rate=1e-6, **more(),")));
    for rule in ["temperature", "clip-range", "kl-coefficient", "gradient-clipping"] {
        assert_eq!(status(&subject, rule), RuleStatus::Insufficient, "{rule}");
    }
    assert!(alarms(&subject).is_empty(), "{:?}", told(&subject));
}

#[test]
fn supervised_training_is_asked_of_its_fields_only() {
    let text = "python3 -m openrlhf.cli.train_sft --actor.adam.lr 1e-3 --data.max_len 2048\n";
    let subject = judged(("sft.sh", text));
    for rule in &subject.rules {
        if !["contradiction", "unknown-field"].contains(&&*rule.id) {
            assert_eq!(rule.status, RuleStatus::NotApplicable, "{}", rule.id);
        }
    }
}

#[test]
fn copies_of_a_model_are_fewer_than_gpus_where_it_is_split() {
    let (name, text) = VERL;
    let gpus = text.replace("trainer.nnodes=1", "trainer.nnodes=3");
    assert_eq!(status(&judged((name, &gpus)), "batch-not-divisible"), RuleStatus::Fires);
    let split = "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=3 trainer.nnodes=3";
    let split = judged((name, &text.replace("trainer.nnodes=1", split)));
    assert_eq!(status(&split, "batch-not-divisible"), RuleStatus::Quiet);
}

#[test]
fn updates_are_counted_where_processes_are_not_known() {
    let (name, text) = TRL;
    let steps = |steps: &str| {
        let with = format!("num_generations=8,\n    steps_per_generation={steps},");
        judged((name, &text.replace("num_generations=8,", &with)))
    };
    assert_eq!(status(&steps("64"), "off-policy"), RuleStatus::Quiet);
    assert_eq!(status(&steps("68"), "off-policy"), RuleStatus::Fires);
}

#[test]
fn every_contradiction_is_told() {
    let micro = "actor_rollout_ref.actor.ppo_micro_batch_size";
    let filter = "algorithm.filter_groups";
    let clip = "vllm_importance_sampling_clip";
    let ratio = "truncated_importance_sampling_ratio";
    let rows = [
        (TRL, "fp16=False", "generation_batch_size=16, steps_per_generation=4".to_owned()),
        (TRL, "fp16=False", format!("{clip}_min=2.0, {clip}_max=2.0")),
        (VERL, "trainer.nnodes=1", format!("trainer.nnodes=1 {micro}=8")),
        (
            VERL,
            "trainer.nnodes=1",
            format!("trainer.nnodes=1 +{filter}={{enable:True,metric:null}}"),
        ),
        (NEMO, "ratio_clip_min", format!("{ratio}_min: 2\n  {ratio}: 0.5\n  ratio_clip_min")),
    ];
    for ((name, text), from, bad) in rows {
        let subject = judged((name, &text.replace(from, &bad)));
        assert_eq!(status(&subject, "contradiction"), RuleStatus::Fires, "{bad}");
        let found = subject.findings.iter().filter(|one| one.rule == "contradiction").count();
        assert_eq!(found, 1, "{bad}");
    }
    let forced = NEMO.1.replace("loss_fn:", "loss_fn:\n  force_on_policy_ratio: true");
    assert_eq!(status(&judged((NEMO.0, &forced)), "contradiction"), RuleStatus::Quiet);
    let twice = forced.replace("size: 512", "size: 256");
    assert_eq!(status(&judged((NEMO.0, &twice)), "contradiction"), RuleStatus::Fires);
}

#[test]
fn what_trains_nothing_is_asked_for_no_groups() {
    let one = VERL.1.replace("rollout.n=8", "rollout.n=1");
    assert_eq!(status(&judged((VERL.0, &one)), "group-of-one"), RuleStatus::Fires);
    let validated = one.replace("trainer.nnodes=1", "trainer.nnodes=1 trainer.val_only=True");
    assert_eq!(status(&judged((VERL.0, &validated)), "group-of-one"), RuleStatus::NotApplicable);
}

#[test]
fn a_part_of_a_configuration_has_no_batch() {
    let part = "actor_rollout_ref:\n  actor:\n    ppo_mini_batch_size: 4\n  rollout:\n    n: 8\n";
    assert_eq!(status(&judged(("actor.yaml", part)), "off-policy"), RuleStatus::Insufficient);
    let whole = format!("{part}data:\n  train_batch_size: 1024\n");
    assert_eq!(status(&judged(("whole.yaml", &whole)), "off-policy"), RuleStatus::Fires);
}
