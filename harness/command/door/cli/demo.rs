//! `shakedown demo`: a planted bug, found, and what to type to find one's own.

use std::path::Path;

use super::{Done, output};
use shakedown_contracts::REGISTRY;
use shakedown_core::value::error::{Error, unknown};
use shakedown_core::value::place::Place;
use shakedown_engine::check;
use shakedown_engine::files::manifest::Manifest;
use shakedown_engine::report::text::write_component;
use shakedown_engine::report::{ExitCode, Status};
use shakedown_engine::subject::{Budget, Subject};

/// A planted bug.
struct Demo {
    name: &'static str,
    /// What is planted, in a sentence.
    planted: &'static str,
    contract: &'static str,
    fault: &'static str,
    options: &'static str,
    /// What to type on code of one's own.
    yours: &'static str,
}

const DEMOS: [Demo; 4] = [
    Demo {
        name: "advantage",
        planted: "A GRPO trainer adds 1 to the deviation, and not 1e-4.",
        contract: "group-advantage",
        fault: "epsilon-swallows-the-signal",
        options: "{scale: std, epsilon: 1.0e-4}",
        yours: "\
@shakedown.GroupAdvantage(scale=\"std\", epsilon=1e-4)
def test_advantages(rewards, groups):
    return my_trainer.advantages(rewards, groups)",
    },
    Demo {
        name: "loss",
        planted: "A policy loss takes the mean of each row, then the mean of these. A mean over \
                  all tokens is declared.",
        contract: "policy-loss",
        fault: "sequence-mean-called-token-mean",
        options: "{aggregate: token-mean}",
        yours: "\
@shakedown.PolicyLoss(aggregate=\"token-mean\", clip_low=0.2, clip_high=0.2)
def test_loss(log_probs, old_log_probs, advantages, mask):
    return my_trainer.policy_loss(log_probs, old_log_probs, advantages, mask)",
    },
    Demo {
        name: "reward",
        planted: "A reward function accepts an answer inside another number: 10 passes for 1.",
        contract: "reward-function",
        fault: "substring-partial-credit",
        options: "{judges: correctness}",
        yours: "\
@shakedown.RewardFunction(judges=\"correctness\").settings(signature=\"trl-chat\")
def test_reward(completions, answer):
    return correctness_reward(completions, answer)",
    },
    Demo {
        name: "trainer",
        planted: "A whole GRPO trainer divides each loss by the number of micro-batches twice.",
        contract: "grpo-step",
        fault: "divided-again-by-micro-batches",
        options: "{accumulation: 2}",
        yours: "shakedown check-trainer trl.GRPOTrainer --config grpo.yaml",
    },
];

pub(super) fn run(which: Option<&str>) -> Done {
    let name = which.unwrap_or(DEMOS[0].name);
    let known = DEMOS.map(|demo| demo.name);
    let demo = DEMOS.iter().find(|demo| demo.name == name);
    let demo = demo.ok_or_else(|| Error::new(unknown("demo", name, &known)))?;

    let Demo { contract, fault, options, .. } = demo;
    let manifest = format!(
        "version: 1\ncomponents:\n  - name: planted\n    contract: {contract}\n    \
         target: builtin:{contract}/fault/{fault}\n    options: {options}\n"
    );
    let manifest = Manifest::parse(&REGISTRY, Path::new("demo.yaml"), &manifest)?;
    let mut subject = Subject::declared(&manifest, &manifest.components[0]);
    (subject.corpora, subject.state) = (None, None);
    subject.replay = Some(format!("shakedown demo {name}"));
    let budget = Budget::default();
    let mut report = check::run(&mut subject, Place::CPU_F32, &budget, &|_| ())?;
    report.warnings.clear(); // of a function that nobody wrote
    if report.status != Status::Fail {
        return Err(Error::new(format!("the planted bug of `{name}` was not found")).into());
    }

    let (mut to, paint) = output();
    writeln!(to, "{}\n", demo.planted)?;
    write_component(&mut to, &report.harmless(), paint)?;
    let others: Vec<&str> = known.into_iter().filter(|other| *other != name).collect();
    writeln!(to, "\n{}\n", paint.strong("On your own code"))?;
    for line in demo.yours.lines() {
        writeln!(to, "    {line}")?;
    }
    writeln!(to, "\nMore demos: {}", others.join(", "))?;
    Ok(ExitCode::AllHold)
}
