//! The reward functions of the usual GRPO tutorial: the same is found in Rust and in Python.

use std::path::Path;
use std::sync::Arc;

use shakedown::contract::erased;
use shakedown::contracts::REGISTRY;
use shakedown::contracts::reward_function::RewardFunction;
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::files::manifest::Manifest;
use shakedown::place::Place;
use shakedown::report::ComponentReport;
use shakedown_targets::tutorial::tutorial;

use crate::{snapshot, summary};

fn check(mut subject: Subject) -> ComponentReport {
    subject.corpora = None;
    run(&mut subject, Place::CPU_F64, &Budget::default(), &|_| ()).unwrap()
}

/// What is found in the functions in Rust, in order.
fn in_rust() -> Vec<ComponentReport> {
    let subject = |function: shakedown_targets::tutorial::Tutorial| {
        let component = erased::component::<RewardFunction>(function.component());
        let contract = erased::of::<RewardFunction>();
        let mut subject = Subject::new(contract, function.name, component);
        subject.options = Arc::new(function.options);
        check(subject)
    };
    tutorial().into_iter().map(subject).collect()
}

#[test]
fn what_is_found_in_rust() {
    let text: Vec<String> = in_rust().iter().map(summary::of).collect();
    snapshot::assert_snapshot("tutorial", "rewards", &text.join("\n\n"));
}

#[test]
fn the_same_is_found_in_python() {
    if std::env::var_os("SHAKEDOWN_PYTHON").is_none() {
        println!("left out: Python (`tests/run` brings one)");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tutorial/rewards.yaml");
    let manifest = Manifest::read(&REGISTRY, &path).unwrap_or_else(|error| panic!("{error}"));
    let declared = manifest.components.iter();
    let in_python = declared.map(|declared| check(Subject::declared(&manifest, declared)));
    let summaries = |reports: Vec<ComponentReport>| -> Vec<String> {
        reports.iter().map(summary::of).collect()
    };
    assert_eq!(summaries(in_python.collect()), summaries(in_rust()));
}
