//! A candidate called once, on a small case: whether it is what it looks like.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::component::Component;
use ndarray::Array1;
use shakedown_contracts as contracts;
use shakedown_contracts::reward_function::{
    Options, RewardFunctionCase, RewardFunctionOutput, TEMPLATES,
};
use shakedown_core::contract::component::{Call, Component as _, Failure};
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::stream;
use shakedown_core::value::place::{Dtype, Place};
use shakedown_core::value::record::{Shared, shared};
use shakedown_core::value::yaml;
use shakedown_engine::check::run;
use shakedown_engine::host::builtin::Builtin;
use shakedown_engine::host::process::{ArrayLibrary, Process, Python, Signature, Wiring};
use shakedown_engine::report::Status;
use shakedown_engine::subject::{Budget, Subject};

/// What came of it.
pub(super) enum Trial {
    /// It gives what the contract asks for.
    Right,
    /// It cannot be called here, and why.
    Unknown(String),
    /// It only looks like one, and why.
    Other(String),
}

/// The file of a candidate.
const CANDIDATE: &str = "shakedown_candidate.py";

const LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Takes out the options that the contract refuses, and gives those in force.
pub(super) fn accepted(component: &mut Component) -> Arc<dyn AnyOptions> {
    let contract = contracts::find(component.contract).expect("it was found by its name");
    let mut options = contract.default_options();
    component.options.retain(|(name, value)| match options.with(name, value) {
        Ok(with) if with.check().is_ok() => {
            options = with;
            true
        }
        _ => false,
    });
    options
}

/// Tries a candidate of the repository in `dir`, until a time.
pub(super) fn of(
    dir: &Path,
    component: &Component,
    options: &Arc<dyn AnyOptions>,
    until: Instant,
) -> Trial {
    match tried(dir, component, options, until) {
        Ok(()) => Trial::Right,
        Err(trial) => trial,
    }
}

fn tried(
    dir: &Path,
    component: &Component,
    options: &Arc<dyn AnyOptions>,
    until: Instant,
) -> Result<(), Trial> {
    let (mut process, _folder) = started(dir, component, until)?;
    let contract = contracts::find(component.contract).expect("it was found by its name");
    let mut cases = stream::cases(contract, Vec::new(), 0, options, Dtype::F32);
    let Some((_, case)) = cases.next() else { return Ok(()) };
    let call = Call { case: &case, options, place: Place::CPU_F32, gradient: false };
    let returned = process.call(&call).map_err(|failure| match failure {
        Failure::Confused { problem, .. } | Failure::Malformed { problem } => {
            Trial::Other(first_line(&problem))
        }
        Failure::Raised { message, .. } => Trial::Other(format!("raised {}", first_line(&message))),
        failure => unknown(&failure.to_string()),
    })?;
    let reference = Builtin::named(contract, &format!("{}/reference", contract.id()));
    let right = reference.ok().and_then(|mut reference| reference.call(&call).ok());
    match right {
        Some(right) => same_shapes(&returned.output, &right.output).map_err(Trial::Other),
        None => Ok(()),
    }
}

fn unknown(why: &str) -> Trial {
    Trial::Unknown(first_line(why))
}

/// Random cases that say which convention a candidate follows.
const CASES: u64 = 32;

/// How many conventions besides those declared a candidate may follow.
const MOST: usize = 3;

/// The options under which a candidate is right that is wrong as declared: other conventions, and
/// no other numbers. None where it is right already, or under none.
pub(super) fn conventions(
    dir: &Path,
    component: &Component,
    options: &Arc<dyn AnyOptions>,
    until: Instant,
) -> Vec<(&'static str, String)> {
    let Ok((process, _folder)) = started(dir, component, until) else { return Vec::new() };
    let contract = contracts::find(component.contract).expect("it was found by its name");
    let mut subject = Subject::new(contract, &*component.name, Box::new(process));
    subject.options = Arc::clone(options);
    let mut found = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let budget = Budget { cases: CASES, time: Some(left / 2), ..Budget::default() };
        let Ok(report) = run(&mut subject, Place::CPU_F32, &budget, &|_| ()) else { break };
        if report.status == Status::Pass && report.cut.is_none() {
            return found;
        }
        let named = report.findings.iter().filter_map(|finding| finding.diagnosis.first());
        let other = named.map(|it| &*it.fault).find_map(|fault| under(&subject, fault));
        let Some(options) = other.filter(|_| found.len() < MOST) else { break };
        let (before, now) = (subject.options.json(), options.json());
        let changed = contract.option_docs().into_iter().map(|doc| doc.name);
        let changed: Vec<&str> =
            changed.filter(|name| before.get(*name) != now.get(*name)).collect();
        if changed.is_empty() || changed.iter().any(|name| now[*name].is_number()) {
            break;
        }
        found.extend(changed.into_iter().map(|name| (name, yaml::inline(&now[name]))));
        subject.options = options;
    }
    Vec::new()
}

/// The options under which what a diagnosis names would be right.
fn under(subject: &Subject, named: &str) -> Option<Arc<dyn AnyOptions>> {
    if let Some((name, value)) = named.split_once(": ") {
        return subject.options.with(name, value).ok();
    }
    let mut variants = subject.contract.fault(named)?.variants().iter();
    variants.find_map(|function| function.as_if(&*subject.options))
}

/// The first of the usual templates in which a reward function pays more for a right answer than
/// for a wrong one.
pub(super) fn template(dir: &Path, component: &Component, until: Instant) -> Option<&'static str> {
    let (mut process, _folder) = started(dir, component, until).ok()?;
    TEMPLATES.into_iter().find(|template| {
        let options = Options { template: (*template).to_owned(), ..Options::default() };
        let completions = ["42", "43"].map(|answer| options.completion(answer));
        let texts = |texts: [&str; 2]| Array1::from_iter(texts.map(str::to_owned));
        let case: Shared = Arc::new(RewardFunctionCase {
            prompts: texts(["What is 6 times 7?"; 2]),
            completions: texts(completions.each_ref().map(|text| &**text)),
            answers: texts(["42"; 2]),
        });
        let options: Arc<dyn AnyOptions> = Arc::new(options);
        let call = Call { case: &case, options: &options, place: Place::CPU_F32, gradient: false };
        let returned = process.call(&call).ok();
        let scores = returned.map(|returned| shared::<RewardFunctionOutput>(&returned.output));
        scores.is_some_and(|scores| scores.rewards[0] > scores.rewards[1])
    })
}

/// The process of a candidate, which has loaded it, and the folder that goes with it.
fn started(dir: &Path, component: &Component, until: Instant) -> Result<(Process, Folder), Trial> {
    let unknown = |why: String| unknown(&why);
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(unknown("it was not tried, as --time was over".to_owned()));
    }
    if let Some(why) = component.code.as_ref().and_then(|code| code.lacks.clone()) {
        return Err(Trial::Unknown(why));
    }
    let contract = contracts::find(component.contract).expect("it was found by its name");
    let dir = dir.canonicalize().map_err(|error| unknown(error.to_string()))?;
    // Its folder goes with it.
    let own = Folder::new().map_err(|error| unknown(error.to_string()))?;
    let target = match component.candidate() {
        Some(text) => {
            let file = own.0.join(CANDIDATE);
            fs::write(&file, text).map_err(|error| unknown(error.to_string()))?;
            format!("python:{}:candidate", file.display())
        }
        None => component.target.clone().ok_or_else(|| unknown("it has no name".to_owned()))?,
    };
    let python = Python {
        path: component.path.iter().map(|path| dir.join(path)).collect(),
        arrays: match component.arrays {
            "torch" => ArrayLibrary::Torch,
            "numpy" => ArrayLibrary::Numpy,
            _ => ArrayLibrary::List,
        },
        load_timeout: LOAD_TIMEOUT.min(left),
        timeout: Python::default().timeout.min(left),
        folder: dir,
        ..Python::default()
    };
    let signature = match component.signature {
        Some("trl") => Signature::Trl,
        Some("trl-chat") => Signature::TrlChat,
        Some("verl") => Signature::Verl,
        _ => Signature::ByName,
    };
    // Nothing is left in the repository.
    let env = [("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())];
    let wiring = Wiring { env: env.into(), ..Wiring::default() };
    let mut process = Process::python(contract, &target, signature, &python).wired(&wiring);
    match process.prepare(Place::CPU_F32) {
        Ok(None) => {}
        Ok(Some(why)) => return Err(unknown(why)),
        Err(error) => return Err(unknown(error.to_string())),
    }
    Ok((process, own))
}

/// Whether every output has the shape that it should have.
fn same_shapes(found: &Shared, expected: &Shared) -> Result<(), String> {
    let shapes = |record: &Shared| {
        let mut shapes = Vec::new();
        record.each(&mut |name, value| {
            shapes.push((name, value.map(|value| value.shape().to_vec())));
        });
        shapes
    };
    for ((name, found), (_, expected)) in shapes(found).into_iter().zip(shapes(expected)) {
        if let (Some(found), Some(expected)) = (found, expected)
            && found != expected
            && !name.starts_with("grad_")
        {
            return Err(format!("gives `{name}` of shape {found:?}, expected {expected:?}"));
        }
    }
    Ok(())
}

/// The first line, without the file of the candidate.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.rsplit_once(&format!("{CANDIDATE} ")).map_or(line, |(_, why)| why).to_owned()
}

/// A folder for one candidate, which goes with the value.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        for number in 0..1000 {
            let name = format!("shakedown-init-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(std::io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
