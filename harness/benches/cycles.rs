//! How fast shakedown is: full cycles, shrinking, Python round trips, and the same property in
//! Hypothesis, all in one run so that the ratios mean something.
//!
//! `cargo bench`, or `tests/run --env` first for the parts that need torch and Hypothesis; a part
//! whose packages are missing says so and is left out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbitrary::Unstructured;
use criterion::{Criterion, criterion_group, criterion_main};
use proptest::prelude::Rng as _;
use shakedown::author::{Call, Component, Contract as _, Options as _, Place};
use shakedown::contract::erased::{self, AnyContract};
use shakedown::contract::invariant::AnyInvariant;
use shakedown::contract::stream;
use shakedown::contracts;
use shakedown::contracts::REGISTRY;
use shakedown::contracts::group_advantage::{GroupAdvantage, GroupAdvantageCase, Options};
use shakedown::contracts::policy_loss::PolicyLoss;
use shakedown::engine::shrink;
use shakedown::engine::subject::Subject;
use shakedown::files::manifest::Manifest;
use shakedown::host::builtin::Builtin;
use shakedown::host::process::{Process, Python, Signature, default_interpreter};
use shakedown::value::record::{AnyRecord as _, Shared};

fn benches_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/benches")
}

fn reference(contract: &'static dyn AnyContract) -> Subject {
    Subject::new(contract, "reference", Box::new(Builtin::reference(contract)))
}

fn law(contract: &'static dyn AnyContract, id: &str) -> &'static AnyInvariant {
    contract.invariant(id).expect("a law")
}

/// Draw, call, oracle, one invariant.
fn cycles(criterion: &mut Criterion) {
    let place = Place::CPU_F32;
    for contract in contracts::all() {
        // Without an oracle the first invariant is what a cycle costs.
        let oracle = contract.invariant("oracle").unwrap_or(&contract.invariants()[0]);
        let mut subject = reference(contract);
        let mut rng = stream::rng(0, contract.id());
        criterion.bench_function(&format!("cycle/{}", contract.id()), |bencher| {
            bencher.iter(|| {
                let case = stream::draw(contract, &mut rng, &*subject.options, place.dtype);
                subject.try_case(oracle, &case, place, &mut 0).0
            });
        });
    }
}

/// One cycle of a batch of the size that a micro-batch has: 16 rows of 32 tokens.
fn policy_loss(criterion: &mut Criterion) {
    let (place, shape) = (Place::CPU_F32, (16, 32));
    let contract = erased::of::<PolicyLoss>();
    let mut subject = reference(contract);
    let options = Arc::clone(&subject.options);
    for id in ["oracle", "gradient"] {
        let law = law(contract, id);
        let mut rng = stream::rng(0, PolicyLoss::ID);
        let name = match id {
            "oracle" => "cycle/policy-loss-16x32".to_owned(),
            other => format!("cycle/policy-loss-16x32-{other}"),
        };
        criterion.bench_function(&name, |bencher| {
            bencher.iter(|| {
                let mut bytes = [0; 1024];
                rng.fill_bytes(&mut bytes);
                let mut u = Unstructured::new(&bytes);
                let case = PolicyLoss::draw_shaped(&mut u, options.typed(), place.dtype, shape);
                let case = case.expect("bytes that run out count as 0").rounded(place.dtype);
                subject.try_case(law, &case, place, &mut 0).0
            });
        });
    }
}

/// A random case that fails for every case, shrunk to the minimum.
fn shrinking(criterion: &mut Criterion) {
    let contract = erased::of::<GroupAdvantage>();
    let options = Options::default();
    let mut rng = stream::rng(0, GroupAdvantage::ID);
    let dtype = Place::CPU_F32.dtype;
    criterion.bench_function("shrink/group-advantage", |bencher| {
        bencher.iter(|| {
            let case = stream::draw(contract, &mut rng, &options, dtype);
            shrink::minimise(contract, &case, &options, dtype, &mut |case| {
                let case: &GroupAdvantageCase = case.typed();
                Some(case.rewards.iter().any(|r| *r > 0.5))
            })
            .tried
        });
    });
}

/// Whether an interpreter has a package.
fn has(interpreter: &Path, package: &str) -> bool {
    let found = Command::new(interpreter).args(["-c", &format!("import {package}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("left out: {} has no {package}", interpreter.display());
    }
    found
}

/// One call of a Python function on tensors, and back.
fn python(criterion: &mut Criterion) {
    let interpreter = default_interpreter();
    if !has(&interpreter, "torch") {
        return;
    }
    let python = Python { interpreter, folder: benches_folder(), ..Python::default() };
    let contract = erased::of::<GroupAdvantage>();
    let mut component =
        Process::python(contract, "python:property.py:grpo", Signature::ByName, &python);
    let place = Place::CPU_F32;
    component.prepare(place).expect("the function loads");
    let options = contract.default_options();
    let case: Shared = contract.corners(&*options, place.dtype).swap_remove(0);
    criterion.bench_function("python/round-trip", |bencher| {
        bencher.iter(|| {
            let call = Call { case: &case, options: &options, place, gradient: false };
            assert!(component.call(&call).is_ok());
        });
    });
    let mut subject = Subject::new(contract, "grpo", Box::new(component));
    let oracle = law(contract, "oracle");
    let mut rng = stream::rng(0, GroupAdvantage::ID);
    criterion.bench_function("python/cycle", |bencher| {
        bencher.iter(|| {
            let case = stream::draw(contract, &mut rng, &*options, place.dtype);
            subject.try_case(oracle, &case, place, &mut 0).0
        });
    });
}

/// The same property with Hypothesis, on the same torch function and on one in plain Python.
fn hypothesis(criterion: &mut Criterion) {
    let interpreter = default_interpreter();
    if !has(&interpreter, "hypothesis") || !has(&interpreter, "torch") {
        return;
    }
    for function in ["plain", "grpo"] {
        criterion.bench_function(&format!("hypothesis/{function}"), |bencher| {
            // Many examples a run, or Hypothesis's own start would be all that is measured.
            bencher.iter_custom(|runs| {
                hypothesis_time(&interpreter, function, runs * EXAMPLES) / EXAMPLES as u32
            });
        });
    }
}

/// Examples for each that is counted.
const EXAMPLES: u64 = 500;

fn hypothesis_time(interpreter: &Path, function: &str, examples: u64) -> Duration {
    let started = Instant::now();
    let output = Command::new(interpreter)
        .args(["property.py", function, &examples.to_string()])
        .current_dir(benches_folder())
        .output()
        .expect("the interpreter runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds: f64 = text.trim().parse().expect("it prints seconds");
    assert!(seconds <= started.elapsed().as_secs_f64());
    Duration::from_secs_f64(seconds)
}

/// How long options take to draw is part of no cycle, but of every fuzz run.
fn options(criterion: &mut Criterion) {
    let bytes = [7; 64];
    criterion.bench_function("draw-options/group-advantage", |bencher| {
        bencher.iter(|| Options::draw(&mut Unstructured::new(&bytes)));
    });
}

/// A manifest is read before anything runs.
fn manifest(criterion: &mut Criterion) {
    let component = |index| {
        format!(
            "- name: c{index}\n  contract: group-advantage\n  \
             target: builtin:group-advantage/reference\n  options: {{epsilon: 1.0e-4}}\n  \
             skip: {{zero-sum: \"not in this trainer\"}}\n"
        )
    };
    let text: String = (0..1000).map(component).collect();
    let folder = tempfile::tempdir().expect("the temporary folder can be written");
    let path = folder.path().join("shakedown.yaml");
    std::fs::write(&path, format!("version: 1\ncomponents:\n{text}")).expect("it can be written");
    criterion.bench_function("manifest/1000-components", |bencher| {
        bencher.iter(|| Manifest::read(&REGISTRY, &path).expect("the manifest is good"));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .measurement_time(Duration::from_secs(3))
        .warm_up_time(Duration::from_secs(1));
    targets = cycles, policy_loss, shrinking, options, manifest, python, hypothesis
}
criterion_main!(benches);
