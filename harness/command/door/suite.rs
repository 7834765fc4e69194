//! `Suite`: many components as a test program of its own.

#[cfg(feature = "snapshots")]
use std::collections::BTreeSet;
use std::path::Path;
#[cfg(feature = "snapshots")]
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::door::check::{Check, Plan, failure_text, package};
#[cfg(feature = "snapshots")]
use crate::door::snapshots::{self, Recording};
use shakedown_contracts::REGISTRY;
use shakedown_core::contract::Contract;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::text::harmless;
use shakedown_engine::check::run;
use shakedown_engine::files::manifest::Manifest;
use shakedown_engine::report::ComponentReport;
use shakedown_engine::subject::{Budget, Subject};

/// Many components as a test program of its own: one listed test for each component, invariant
/// and place. For a test target with `harness = false`:
///
/// ```no_run
/// # use shakedown::contracts::group_advantage::GroupAdvantage;
/// # fn ours(_: &shakedown::contracts::group_advantage::GroupAdvantageCase) -> Vec<f64> { vec![] }
/// fn main() -> std::process::ExitCode {
///     shakedown::Suite::new()
///         .with(shakedown::check::<GroupAdvantage>(ours).named("grpo"))
///         .manifest("shakedown.yaml")
///         .run()
/// }
/// ```
#[must_use = "a suite does nothing until `run` is called"]
#[derive(Default)]
pub struct Suite {
    trials: Vec<Trial>,
    error: Option<Error>,
    #[cfg(feature = "snapshots")]
    recorders: Vec<Recorder>,
    #[cfg(feature = "snapshots")]
    snapshots: Option<PathBuf>,
}

/// A component at a place whose outputs may be recorded.
#[cfg(feature = "snapshots")]
struct Recorder {
    test: String,
    /// The name of the snapshot.
    name: String,
    deterministic: bool,
    record: Box<dyn FnOnce() -> Result<Option<Recording>, Error> + Send>,
}

impl Suite {
    /// No components yet.
    pub fn new() -> Suite {
        Suite::default()
    }

    /// Adds a component.
    pub fn with<C: Contract>(mut self, check: Check<C>) -> Suite {
        let Plan { subject, places, budget } = check.plan;
        match Place::from_env() {
            Ok(asked) => self.plan(subject, asked.unwrap_or(places), budget),
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }

    /// Adds every component of a manifest; a relative path begins in the package under test.
    pub fn manifest(mut self, path: impl AsRef<Path>) -> Suite {
        if let Err(error) = self.try_manifest(&package().join(path)) {
            self.error = self.error.or(Some(error));
        }
        self
    }

    /// Also records what each component gives on its regressions, those of shakedown and those of
    /// the package, in `FOLDER/NAME-PLACE.snap`: one listed test for each component and place,
    /// `grpo::snapshot::cpu/f32`. A relative path begins in the package under test.
    ///
    /// A test whose outputs are others than the recorded ones, by more than the tolerance of their
    /// dtype, fails with the difference and writes a `.snap.new` for `cargo insta review`; with
    /// `INSTA_UPDATE=always` it writes the snapshot itself. A component that declares
    /// `deterministic: false` has nothing to record: its test is listed as ignored.
    #[cfg(feature = "snapshots")]
    pub fn snapshots(mut self, folder: impl AsRef<Path>) -> Suite {
        self.snapshots = Some(package().join(folder));
        self
    }

    fn try_manifest(&mut self, path: &Path) -> Result<(), Error> {
        let manifest = Manifest::read(&REGISTRY, path)?;
        let asked = Place::from_env()?;
        for declared in &manifest.components {
            let places = declared.places(asked.as_deref());
            self.plan(Subject::declared(&manifest, declared), places, Budget::default());
        }
        Ok(())
    }

    fn plan(&mut self, subject: Subject, places: Vec<Place>, budget: Budget) {
        let name = subject.name.clone();
        let (contract, options) = (subject.contract, Arc::clone(&subject.options));
        let skip = subject.skip.clone();
        let subject = Arc::new(Mutex::new(subject));
        for place in places {
            let told: Arc<Mutex<Told>> = Arc::default();
            #[cfg(feature = "snapshots")]
            self.recorders.push(Recorder::new(&subject, &name, place, options.deterministic()));
            for invariant in contract.invariants() {
                if !invariant.applies(&*options, place) {
                    continue;
                }
                let (subject, budget, id) = (Arc::clone(&subject), budget.clone(), invariant.id);
                let title = format!("{name}::{id}::{place}");
                let (told, itself) = (Arc::clone(&told), title.clone());
                let test = move || {
                    // A test that failed before has no bearing on this one.
                    let mut subject = subject.lock().unwrap_or_else(PoisonError::into_inner);
                    subject.only = vec![id.to_owned()];
                    let report = run(&mut subject, place, &budget, &|_| ())
                        .map_err(|error| Failed::from(error.to_string()))?;
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    test_text(&mut told, report, &itself)
                        .map_or(Ok(()), |text| Err(Failed::from(text)))
                };
                let trial = Trial::test(title, test);
                self.trials.push(trial.with_ignored_flag(skip.contains_key(id)));
            }
        }
    }

    /// Adds the tests that record, where that is asked for.
    #[cfg(feature = "snapshots")]
    fn plan_snapshots(&mut self) -> Result<(), Error> {
        let Some(folder) = &self.snapshots else { return Ok(()) };
        let mut names = BTreeSet::new();
        for Recorder { test, name, deterministic, record } in self.recorders.drain(..) {
            if !names.insert(name.clone()) {
                let message = format!("two components would have the snapshot `{name}`");
                return Err(Error::new(message));
            }
            let folder = folder.clone();
            let compare = move || {
                if let Some(recording) = record().map_err(|error| error.to_string())? {
                    recording.assert(&folder, &name);
                }
                Ok(())
            };
            self.trials.push(Trial::test(test, compare).with_ignored_flag(!deterministic));
        }
        Ok(())
    }

    /// Runs the tests that the arguments of the process ask for, as libtest does.
    #[cfg_attr(not(feature = "snapshots"), expect(unused_mut, reason = "to plan the snapshots"))]
    pub fn run(mut self) -> ExitCode {
        #[cfg(feature = "snapshots")]
        if let Err(error) = self.plan_snapshots() {
            self.error = self.error.or(Some(error));
        }
        if let Some(error) = self.error {
            eprintln!("error: {error}");
            return shakedown_engine::report::ExitCode::CouldNotRun.into();
        }
        if self.trials.is_empty() {
            eprintln!("error: the suite has no component");
            return shakedown_engine::report::ExitCode::NothingChecked.into();
        }
        libtest_mimic::run(&Arguments::from_args(), self.trials).exit_code()
    }
}

#[cfg(feature = "snapshots")]
impl Recorder {
    fn new(
        subject: &Arc<Mutex<Subject>>,
        name: &str,
        place: Place,
        deterministic: bool,
    ) -> Recorder {
        let subject = Arc::clone(subject);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_.".contains(c) { c } else { '-' };
        Recorder {
            test: format!("{name}::snapshot::{place}"),
            name: format!("{name}-{place}").chars().map(plain).collect(),
            deterministic,
            record: Box::new(move || {
                let mut subject = subject.lock().unwrap_or_else(PoisonError::into_inner);
                snapshots::of_subject(&mut subject, place)
            }),
        }
    }
}

/// The causes that failed tests of a component at a place told of, each with the test.
type Told = Vec<(String, String)>;

/// What a test says of a report that is not all good: of a bug that another test told of, a line
/// with the name of that test.
fn test_text(told: &mut Told, report: ComponentReport, itself: &str) -> Option<String> {
    let (mut lines, mut before) = (String::new(), Vec::new());
    for bug in report.bugs() {
        let cause = bug.cause();
        match told.iter().find(|(known, _)| *known == cause) {
            Some((_, test)) => {
                let found = harmless(bug.head.found.lines().next().unwrap_or_default());
                lines.push_str(&format!("\nthe same bug as that of `{test}`: {found}"));
                before.push(bug.head.bug);
            }
            None => told.push((cause, itself.to_owned())),
        }
    }
    if before.is_empty() {
        return failure_text(&[report]);
    }
    let mut others = report;
    others.findings.retain(|finding| !before.contains(&finding.bug));
    match others.findings.is_empty() {
        true => Some(lines),
        false => failure_text(&[others]).map(|text| lines + &text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::check::check;
    use shakedown_contracts::group_advantage::GroupAdvantage;

    #[test]
    fn a_bug_is_told_once_and_the_next_test_says_where_in_a_line() {
        let report = |id: &str| {
            let raw = check::<GroupAdvantage>(|case| case.rewards.clone()).without_corpora();
            let mut raw = raw.cases(8);
            raw.plan.subject.only = vec![id.to_owned()];
            let mut reports = raw.report().unwrap();
            assert!(reports.len() == 1 && reports[0].bugs().len() == 1);
            reports.remove(0)
        };
        let mut told = Told::new();
        let first = test_text(&mut told, report("oracle"), "ours::oracle::cpu/f64").unwrap();
        assert_eq!(first.matches("  ✗ ").count(), 1, "{first}");
        assert!(first.contains("    claim"), "{first}");
        let again = test_text(&mut told, report("zero-sum"), "ours::zero-sum::cpu/f64").unwrap();
        let line = "\nthe same bug as that of `ours::oracle::cpu/f64`: group ";
        assert!(again.starts_with(line) && again.lines().count() == 2, "{again}");
    }
}
