//! `shakedown drive`: a check whose component runs in the process that started this one. It sends
//! one `job`, then answers calls, and gets a `report` (`PROTOCOL.md`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Done;
use crate::render::html;
use shakedown_contracts::REGISTRY;
use shakedown_core::value::error::Error;
use shakedown_core::value::location::Location;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{Shared, Source, Value};
use shakedown_core::value::wire::{self, Message};
use shakedown_core::value::yaml::{self, Document, Step};
use shakedown_engine::check;
use shakedown_engine::files::case_file::CaseFile;
use shakedown_engine::files::journal::Journaled;
use shakedown_engine::files::manifest::{Declared, Manifest, Target};
use shakedown_engine::host::process::{Process, parent};
use shakedown_engine::report::text::{Paint, write_component};
use shakedown_engine::report::{ExitCode, Report};
use shakedown_engine::subject::{Budget, Subject};

/// A job is a manifest and a few examples.
const LARGEST_JOB: u64 = 1 << 26;

/// What is to be checked, and how.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// The YAML of a manifest with one component, whose target says where its function is written.
    manifest: String,
    /// Random cases after the corners.
    cases: u64,
    seed: u64,
    #[serde(default)]
    time_ms: Option<u64>,
    /// Search for so long, guided by what the component does, in place of a number of cases.
    #[serde(default)]
    fuzz_ms: Option<u64>,
    /// Only these invariants, where there are any.
    #[serde(default)]
    only: Vec<String>,
    /// The YAML of a list of cases to begin with.
    #[serde(default)]
    examples: Option<String>,
    /// A case file: this case and no other.
    #[serde(default)]
    case: Option<PathBuf>,
    /// Where findings and journals go; nowhere where it is absent.
    #[serde(default)]
    state: Option<PathBuf>,
    /// How to check a kept case again, with `{file}` in it.
    replay: String,
    /// Where the component is declared.
    #[serde(default)]
    location: Option<(PathBuf, usize)>,
}

pub(super) fn run() -> Done {
    match check() {
        Ok(report) => {
            say_report(&report);
            Ok(report.exit_code())
        }
        Err(Refusal { problem, error }) => {
            say("refused", [("problem", problem.to_owned()), ("message", error.to_string())]);
            Ok(ExitCode::CouldNotRun)
        }
    }
}

/// Why a job is not done.
struct Refusal {
    problem: &'static str,
    error: Error,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal { problem: "bad-job", error }
    }
}

fn say_report(report: &Report) {
    let mut text = Vec::new();
    for component in &report.components {
        write_component(&mut text, component, Paint::default()).expect("memory can be written");
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    say("report", [("report", report.json()), ("text", text), ("html", html::page(report))]);
}

fn say<const N: usize>(kind: &str, texts: [(&str, String); N]) {
    let mut message = Message::new(kind);
    texts.into_iter().for_each(|(key, text)| message.text(key, text));
    parent::tell(&wire::encode(&[], message.texts, Dtype::F64));
}

fn check() -> Result<Report, Refusal> {
    let job = hear_job()?;
    let manifest =
        Manifest::parse(&REGISTRY, Path::new(""), &job.manifest).map_err(|error| plain(&error))?;
    let [declared] = &manifest.components[..] else {
        return Err(Error::new("expected a manifest with one component").into());
    };
    let started = Instant::now();
    let mut subject = subject(&job, &manifest, declared)?;
    if let Some(time) = job.fuzz_ms {
        return Err(fuzz(&job, subject, declared, Duration::from_millis(time)).into());
    }
    let budget =
        Budget { cases: job.cases, seed: job.seed, time: job.time_ms.map(Duration::from_millis) };
    let mut reports = Vec::new();
    for place in declared.places(None) {
        let mut report = match &job.case {
            None => check::run(&mut subject, place, &budget, &|_| ())?,
            Some(path) => {
                let file = CaseFile::read_of(declared.contract, path)?;
                check::run_on(&mut subject, place, &file.case.rounded(place.dtype))?
            }
        };
        report.location = job.location.as_ref().map(|(path, line)| Location::new(path, *line));
        reports.push(report);
    }
    Ok(Report::new(job.seed, None, started, reports))
}

/// Searches until the time is over, says what was found, and ends the process.
#[cfg(feature = "fuzz")]
fn fuzz(job: &Job, subject: Subject, declared: &Declared, time: Duration) -> Error {
    use crate::door::fuzz::engine::Next;
    use crate::door::fuzz::job::{self, Limits};
    use crate::door::fuzz::session::Session;
    use shakedown_core::contract::coverage;

    let Some(state) = &job.state else { return Error::new("a search needs a folder `state`") };
    let corpus = state.join(declared.contract.id()).join("fuzz").join(slug(&declared.name));
    if let Err(error) = std::fs::create_dir_all(&corpus) {
        return Error::io("make", &corpus, &error);
    }
    let scratch = match tempfile::tempdir() {
        Ok(scratch) => scratch,
        Err(error) => return Error::new(format!("cannot make a temporary folder: {error}")),
    };
    coverage::start();
    let session = match Session::start(subject, false, &declared.places(None), job.seed) {
        Ok(session) => session,
        Err(error) => return error,
    };
    let beginnings = scratch.path().join("beginnings");
    let limits = Limits { seed: job.seed, time, runs: u64::MAX, corpus, beginnings };
    let (seed, location, started) = (job.seed, job.location.clone(), Instant::now());
    let done = move |places: Vec<crate::door::fuzz::session::AtOnePlace>| {
        drop(scratch);
        let reports = places.into_iter().map(|at| {
            let mut report = at.report;
            report.number_bugs();
            report.location = location.as_ref().map(|(path, line)| Location::new(path, *line));
            report
        });
        let report = Report::new(seed, None, started, reports.collect());
        say_report(&report);
        Next::Exit(report.exit_code() as u8)
    };
    job::run(session, limits, |_| (), done)
}

#[cfg(not(feature = "fuzz"))]
fn fuzz(_: &Job, _: Subject, _: &Declared, _: Duration) -> Error {
    Error::new("this shakedown was built without `fuzz`")
}

/// A name as a folder may have it.
#[cfg(feature = "fuzz")]
fn slug(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

/// The job, which is the first message.
fn hear_job() -> Result<Job, Refusal> {
    let wrong = |why: String| Error::new(format!("a job was not understood: {why}"));
    let bytes = parent::hear(LARGEST_JOB).map_err(|error| wrong(error.to_string()))?;
    let message = Message::decode(&bytes).map_err(wrong)?;
    let version = env!("CARGO_PKG_VERSION");
    match (message.get("kind"), message.get("version")) {
        // A package that runs from a checkout has no version.
        ("job", theirs) if theirs == version || theirs.is_empty() => {}
        ("job", theirs) => {
            let error = Error::new(format!("the command is {version}, the package {theirs}"));
            return Err(Refusal { problem: "other-version", error });
        }
        (kind, _) => return Err(wrong(format!("expected `job`, found `{kind}`")).into()),
    }
    Ok(serde_json::from_str(message.get("job")).map_err(|error| wrong(error.to_string()))?)
}

/// The component, which the parent process runs.
fn subject(job: &Job, manifest: &Manifest, declared: &Declared) -> Result<Subject, Error> {
    let Target::Python(target) = &declared.target else {
        return Err(Error::new("expected a target `python:…`"));
    };
    let contract = declared.contract;
    let process = Process::driven(contract, target, declared.signature, manifest.python());
    let component = Box::new(process.wired(&declared.wiring));
    let mut only = Vec::new();
    for id in &job.only {
        only.push(contract.invariant_called(id).map_err(Error::new)?.id.to_owned());
    }
    let known = Subject::declared(manifest, declared);
    Ok(Subject {
        component: Journaled::new(component),
        manifest: None,
        state: job.state.clone(),
        replay: Some(job.replay.clone()),
        first: examples(job, declared)?,
        only,
        ..known
    })
}

/// The cases to begin with.
fn examples(job: &Job, declared: &Declared) -> Result<Vec<Shared>, Error> {
    let Some(text) = &job.examples else { return Ok(Vec::new()) };
    let document = Document::new(text);
    let length = document.read::<Vec<HashMap<String, serde_yaml::Value>>>()?.len();
    let contract = declared.contract;
    (0..length)
        .map(|index| {
            let make = |get: Source<'_, Value>| contract.case(get);
            yaml::record_at(&document, &[Step::Item(index)], &contract.inputs(), make)
                .map_err(|error| error.within(format!("examples[{index}]")))
        })
        .collect()
}

/// An error in what Python made of its arguments, without a place in a text that nobody sees.
fn plain(error: &Error) -> Error {
    let text = error.to_string();
    let rest = text.strip_prefix("component `").and_then(|rest| rest.split_once("`: "));
    Error::new(rest.map_or(&*text, |(_, rest)| rest).replace("components[0].", ""))
}
