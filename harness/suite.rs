//! The library's door: `check` for one component in a plain test, `Suite` for many.

#[cfg(feature = "snapshots")]
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use arbitrary::Unstructured;
use libtest_mimic::{Arguments, Failed, Trial};

use crate::check::{Budget, Subject, run};
use crate::component::{Component, HostFn, HostFunction};
#[cfg(feature = "snapshots")]
use crate::contract::SharedOptions;
use crate::contract::{Contract, Options};
use crate::contracts::{self, Visit};
use crate::error::Error;
use crate::fuzz;
use crate::invariant::check_invariant;
use crate::manifest::{Declared, Manifest};
use crate::place::Place;
use crate::report::{ComponentReport, Paint, Status, write_component};
#[cfg(feature = "snapshots")]
use crate::snapshots::{self, Recording};

/// Checks a function on host arrays against the contract `C`.
///
/// ```
/// use shakedown::contracts::group_advantage::{GroupAdvantage, Options, Scale};
///
/// shakedown::check::<GroupAdvantage>(|case| {
///     // Dr. GRPO: rewards less the mean of their group.
///     let mean = |group| {
///         let rows = case.groups.iter().zip(&case.rewards).filter(|(g, _)| **g == group);
///         rows.clone().map(|(_, reward)| reward).sum::<f64>() / rows.count() as f64
///     };
///     let rows = case.rewards.iter().zip(&case.groups);
///     rows.map(|(reward, group)| reward - mean(*group)).collect::<Vec<f64>>()
/// })
/// .options(Options { scale: Scale::None, ..Options::default() })
/// # .without_corpora()
/// .run();
/// ```
pub fn check<C: Contract>(function: impl HostFunction<C> + 'static) -> Check<C> {
    check_component(HostFn(function))
}

/// Checks any component: a function on tensors, a Python function, a process.
pub fn check_component<C: Contract>(component: impl Component<C> + 'static) -> Check<C> {
    let mut subject = Subject::new(C::ID, component);
    subject.corpora = Some(package().join("corpora"));
    Check { places: vec![subject.component.home()], subject, budget: Budget::default() }
}

/// The folder of the package under test; where there is none, paths begin in the working folder.
fn package() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default()
}

/// A check that has not run yet. See [`check`].
#[must_use = "a check does nothing until `run` is called"]
pub struct Check<C: Contract> {
    subject: Subject<C>,
    places: Vec<Place>,
    budget: Budget,
}

impl<C: Contract> Check<C> {
    /// The name in reports and of case files; the contract's, unless said.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.subject.name);
        self
    }

    /// The conventions that the component follows.
    ///
    /// # Panics
    /// If a value is out of range.
    #[track_caller]
    pub fn options(mut self, options: C::Options) -> Self {
        if let Err((name, why)) = options.check() {
            panic!("option `{name}`: {why}");
        }
        self.subject.options = options;
        self
    }

    /// Where to check it. `SHAKEDOWN_PLACES` overrides.
    pub fn places(mut self, places: impl IntoIterator<Item = Place>) -> Self {
        self.places = places.into_iter().collect();
        self
    }

    /// Leaves an invariant out, for a reason.
    ///
    /// # Panics
    /// If the contract has no such invariant.
    #[track_caller]
    pub fn skip(mut self, invariant: &str, why: &str) -> Self {
        self.subject.skip.insert(known_invariant::<C>(invariant), why.to_owned());
        self
    }

    /// Expects an invariant to fail, for a reason; that it holds is then reported.
    ///
    /// # Panics
    /// If the contract has no such invariant.
    #[track_caller]
    pub fn known(mut self, invariant: &str, why: &str) -> Self {
        self.subject.known.insert(known_invariant::<C>(invariant), why.to_owned());
        self
    }

    /// Widens every tolerance by a factor, in the open.
    pub fn tolerance(mut self, factor: f64) -> Self {
        self.subject.tolerance = factor;
        self
    }

    /// How many random cases follow the corners.
    pub fn cases(mut self, cases: u64) -> Self {
        self.budget.cases = cases;
        self
    }

    /// The seed of the random cases.
    pub fn seed(mut self, seed: u64) -> Self {
        self.budget.seed = seed;
        self
    }

    /// Where regressions are and findings go, instead of `corpora` in the package.
    pub fn corpora(mut self, folder: impl AsRef<Path>) -> Self {
        self.subject.corpora = Some(folder.as_ref().to_owned());
        self
    }

    /// Reads no regressions of the package and writes no findings.
    pub fn without_corpora(mut self) -> Self {
        self.subject.corpora = None;
        self
    }

    /// Checks every invariant, and gives one report for each place.
    ///
    /// # Errors
    /// shakedown could not run. What the component does wrong is in the reports.
    pub fn report(mut self) -> Result<Vec<ComponentReport>, Error> {
        let places = Place::from_env()?.unwrap_or(self.places);
        let check = |place| run(&mut self.subject, place, &self.budget, &|_| ());
        places.into_iter().map(check).collect()
    }

    /// Checks every invariant.
    ///
    /// # Panics
    /// With the report, if anything is wrong with the component, or if nothing was checked.
    #[track_caller]
    pub fn run(self) {
        let reports = self.report().unwrap_or_else(|error| panic!("{error}"));
        if let Some(text) = failure_text(&reports) {
            panic!("{text}");
        }
    }
}

impl<C: Contract> Check<C> {
    /// Checks it on the one case that some bytes stand for, as the body of a libFuzzer target of
    /// your own, so that the fuzzer sees which of your branches ran:
    ///
    /// ```text
    /// fuzz_target!(init: shakedown::fuzz::init(), |bytes: &[u8]| {
    ///     shakedown::check::<GroupAdvantage>(my_trainer::grpo).fuzz(bytes);
    /// });
    /// ```
    ///
    /// # Panics
    /// With the finding and the path of its case file, which is what libFuzzer takes for a crash.
    pub fn fuzz(mut self, bytes: &[u8]) {
        fuzz::input(&mut self.subject, &self.places, &mut Unstructured::new(bytes));
    }
}

#[track_caller]
fn known_invariant<C: Contract>(id: &str) -> String {
    match check_invariant::<C>(id) {
        Ok(()) => id.to_owned(),
        Err(message) => panic!("{message}"),
    }
}

/// The text of reports that are not all good; places that are not here are named on standard error.
fn failure_text(reports: &[ComponentReport]) -> Option<String> {
    let mut text = Vec::new();
    let mut failed = false;
    for report in reports {
        let mut lines = Vec::new();
        write_component(&mut lines, report, Paint::default()).expect("memory can be written");
        match report.status {
            Status::Pass => {}
            Status::Skipped => eprint!("{}", String::from_utf8_lossy(&lines)),
            Status::Fail | Status::Error => {
                failed = true;
                text.extend(lines);
            }
        }
    }
    let checked = |report: &ComponentReport| report.invariants.iter().any(|i| i.cases > 0);
    let is_elsewhere = |r: &ComponentReport| r.status == Status::Skipped && r.invariants.is_empty();
    if failed {
        Some(format!("\n{}", String::from_utf8_lossy(&text)))
    } else if reports.iter().any(checked) || reports.iter().all(is_elsewhere) {
        None
    } else {
        Some("nothing was checked".to_owned())
    }
}

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
        let Check { subject, places, budget } = check;
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
        let manifest = Manifest::read(path)?;
        let asked = Place::from_env()?;
        for declared in &manifest.components {
            let places = declared.places(asked.as_deref());
            let add = AddDeclared { suite: self, manifest: &manifest, declared, places };
            contracts::visit(declared.contract, add).expect("the manifest was checked")?;
        }
        Ok(())
    }

    fn plan<C: Contract>(&mut self, subject: Subject<C>, places: Vec<Place>, budget: Budget) {
        let name = subject.name.clone();
        let (options, skip) = (subject.options.clone(), subject.skip.clone());
        let subject = Arc::new(Mutex::new(subject));
        for place in places {
            #[cfg(feature = "snapshots")]
            self.recorders.push(Recorder::new(&subject, &name, place, options.deterministic()));
            for invariant in C::invariants() {
                if !(invariant.applies)(&options, place) {
                    continue;
                }
                let (subject, budget, id) = (Arc::clone(&subject), budget.clone(), invariant.id);
                let test = move || {
                    // A test that failed before has no bearing on this one.
                    let mut subject = subject.lock().unwrap_or_else(PoisonError::into_inner);
                    subject.only = vec![id.to_owned()];
                    let report = run(&mut subject, place, &budget, &|_| ())
                        .map_err(|error| Failed::from(error.to_string()))?;
                    failure_text(&[report]).map_or(Ok(()), |text| Err(Failed::from(text)))
                };
                let trial = Trial::test(format!("{name}::{id}::{place}"), test);
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
            return crate::report::ExitCode::CouldNotRun.into();
        }
        if self.trials.is_empty() {
            eprintln!("error: the suite has no component");
            return crate::report::ExitCode::NothingChecked.into();
        }
        libtest_mimic::run(&Arguments::from_args(), self.trials).exit_code()
    }
}

#[cfg(feature = "snapshots")]
impl Recorder {
    fn new<C: Contract>(
        subject: &Arc<Mutex<Subject<C>>>,
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

struct AddDeclared<'a> {
    suite: &'a mut Suite,
    manifest: &'a Manifest,
    declared: &'a Declared,
    places: Vec<Place>,
}

impl Visit for AddDeclared<'_> {
    type Output = Result<(), Error>;

    fn visit<C: Contract>(self) -> Result<(), Error> {
        let subject = self.manifest.subject::<C>(self.declared)?;
        self.suite.plan(subject, self.places, Budget::default());
        Ok(())
    }
}
