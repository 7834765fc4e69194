//! The functions of real libraries, checked as the manifests of `targets/python` declare them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use shakedown::contracts::REGISTRY;
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::files::manifest::{Declared, Manifest};
use shakedown::report::{ComponentReport, Status};

use crate::{snapshot, summary};

/// Besides the corners, of which there are several dozen: what CI has time for.
const BUDGET: Budget = Budget { cases: 32, seed: 0, time: None };

/// Python processes at a time: each of them imports a library, which takes seconds.
const PROCESSES: usize = 2;

/// Reports of one component, one for each of its places.
fn reports(manifest: &Manifest, declared: &Declared) -> Vec<ComponentReport> {
    let mut subject = Subject::declared(manifest, declared);
    subject.corpora = None;
    let places = declared.places(None).into_iter();
    places.map(|place| run(&mut subject, place, &BUDGET, &|_| ()).unwrap()).collect()
}

/// Checks the components of one manifest, and compares what came of them with the snapshot.
fn check(library: &str) {
    let Some(python) = std::env::var_os("SHAKEDOWN_PYTHON") else {
        println!("left out: real libraries (`tests/run` brings the Python that has them)");
        return;
    };
    let installed = "import sys, importlib.util as u; sys.exit(u.find_spec(sys.argv[1]) is None)";
    let found = Command::new(&python).args(["-c", installed, library]).status().unwrap();
    if !found.success() {
        println!("left out: {library}, which requirements-no-deps.txt has not for this Python");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("python/{library}.yaml"));
    let manifest = Manifest::read(&REGISTRY, &path).unwrap_or_else(|error| panic!("{error}"));
    let waiting = Mutex::new(manifest.components.iter().enumerate());
    let texts = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let next = waiting.lock().unwrap().next();
            let Some((index, declared)) = next else { break };
            for (at, report) in reports(&manifest, declared).iter().enumerate() {
                let reason = report.reason.as_deref().unwrap_or("");
                let checked = matches!(report.status, Status::Pass | Status::Fail);
                assert!(checked, "{} with {python:?}: {reason}", report.name);
                texts.lock().unwrap().insert((index, at), summary::of(report));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(work);
        }
    });
    let text: Vec<String> = texts.into_inner().unwrap().into_values().collect();
    snapshot::assert_snapshot("real", library, &text.join("\n\n"));
}

/// Declares one test for each manifest, and the list of them.
macro_rules! libraries {
    ($( $library:ident ),+) => {
        $(
            #[test]
            fn $library() {
                check(stringify!($library));
            }
        )+

        const LIBRARIES: &[&str] = &[$( stringify!($library) ),+];
    };
}

libraries!(
    math_verify,
    openrlhf,
    rl_games,
    stable_baselines3,
    torchrl,
    torchtune,
    transformers,
    trl,
    verl
);

#[test]
fn every_manifest_of_the_folder_is_checked() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    found.sort();
    assert_eq!(found, LIBRARIES);
}
