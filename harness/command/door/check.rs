//! `check`: one component in a plain test.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arbitrary::Unstructured;

use crate::door::fuzz;
use shakedown_core::contract::component::Component;
use shakedown_core::contract::options::Options as _;
use shakedown_core::contract::{Contract, erased};
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_engine::check::run;
use shakedown_engine::files::journal::Journaled;
use shakedown_engine::host::function::{ByDifferences, HostFn, HostFunction};
use shakedown_engine::report::text::{Paint, write_component};
use shakedown_engine::report::{ComponentReport, Status};
use shakedown_engine::subject::{Budget, Subject};

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
pub fn check<C: Contract>(function: impl HostFunction<C> + Send + 'static) -> Check<C> {
    check_component(HostFn::new(function))
}

/// Checks any component: a function on tensors, a Python function, a process.
pub fn check_component<C: Contract>(component: impl Component<C> + 'static) -> Check<C> {
    let component = erased::component::<C>(component);
    let mut subject = Subject::new(erased::of::<C>(), C::ID, component);
    subject.corpora = Some(package().join("corpora"));
    subject.replay = test_name().map(|name| format!("cargo test {name} -- --exact"));
    let places = vec![subject.component.home()];
    Check { plan: Plan { subject, places, budget: Budget::default() }, of: PhantomData }
}

/// The test that runs: the harness of tests gives its thread this name.
fn test_name() -> Option<String> {
    let thread = std::thread::current();
    thread.name().filter(|name| *name != "main").map(str::to_owned)
}

/// The folder of the package under test; where there is none, paths begin in the working folder.
/// The targets of cargo-fuzz are a package of their own, in a folder of the one that they test.
pub(crate) fn package() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    tested_by(&package).unwrap_or(package)
}

fn tested_by(package: &Path) -> Option<PathBuf> {
    let manifest = std::fs::read_to_string(package.join("Cargo.toml")).ok()?;
    let is_fuzz = manifest.lines().any(|line| line.trim_start().starts_with("cargo-fuzz"));
    let parent =
        package.parent().filter(|parent| is_fuzz && parent.join("Cargo.toml").is_file())?;
    Some(parent.to_owned())
}

/// A check that has not run yet. See [`check`].
#[must_use = "a check does nothing until `run` is called"]
pub struct Check<C: Contract> {
    pub(crate) plan: Plan,
    of: PhantomData<fn(C)>,
}

/// A component, where it is checked, and for how long.
pub(crate) struct Plan {
    pub(crate) subject: Subject,
    pub(crate) places: Vec<Place>,
    pub(crate) budget: Budget,
}

impl<C: Contract> Check<C> {
    /// The name in reports and of case files; the contract's, unless said.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.plan.subject.name);
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
        self.plan.subject.options = Arc::new(options);
        self
    }

    /// Where to check it. `SHAKEDOWN_PLACES` overrides.
    pub fn places(mut self, places: impl IntoIterator<Item = Place>) -> Self {
        self.plan.places = places.into_iter().collect();
        self
    }

    /// Takes the gradients from the values, by central differences at f64, and not from what the
    /// component returns in `grad_…`: for a function without autograd.
    pub fn by_differences(self) -> Self {
        let Plan { subject, places, budget } = self.plan;
        let component = Journaled::new(Box::new(ByDifferences(Box::new(subject.component))));
        let subject = Subject { component, ..subject };
        Check { plan: Plan { subject, places, budget }, of: self.of }
    }

    /// Leaves an invariant out, for a reason.
    ///
    /// # Panics
    /// If the contract has no such invariant.
    #[track_caller]
    pub fn skip(mut self, invariant: &str, why: &str) -> Self {
        let id = self.known_invariant(invariant);
        self.plan.subject.skip.insert(id, why.to_owned());
        self
    }

    /// Expects an invariant to fail, for a reason; that it holds is then reported.
    ///
    /// # Panics
    /// If the contract has no such invariant.
    #[track_caller]
    pub fn known(mut self, invariant: &str, why: &str) -> Self {
        let id = self.known_invariant(invariant);
        self.plan.subject.known.insert(id, why.to_owned());
        self
    }

    #[track_caller]
    fn known_invariant(&self, id: &str) -> String {
        let invariant = self.plan.subject.contract.invariant_called(id);
        invariant.map_or_else(|message| panic!("{message}"), |invariant| invariant.id.to_owned())
    }

    /// Widens every tolerance by a factor, in the open.
    pub fn tolerance(mut self, factor: f64) -> Self {
        self.plan.subject.tolerance = factor;
        self
    }

    /// How many random cases follow the corners.
    pub fn cases(mut self, cases: u64) -> Self {
        self.plan.budget.cases = cases;
        self
    }

    /// The seed of the random cases.
    pub fn seed(mut self, seed: u64) -> Self {
        self.plan.budget.seed = seed;
        self
    }

    /// Where regressions are and findings go, instead of `corpora` in the package.
    pub fn corpora(mut self, folder: impl AsRef<Path>) -> Self {
        self.plan.subject.corpora = Some(folder.as_ref().to_owned());
        self
    }

    /// Reads no regressions of the package and writes no findings.
    pub fn without_corpora(mut self) -> Self {
        self.plan.subject.corpora = None;
        self
    }

    /// Checks every invariant, and gives one report for each place.
    ///
    /// # Errors
    /// shakedown could not run. What the component does wrong is in the reports.
    pub fn report(self) -> Result<Vec<ComponentReport>, Error> {
        let Plan { mut subject, places, budget } = self.plan;
        let places = Place::from_env()?.unwrap_or(places);
        places.into_iter().map(|place| run(&mut subject, place, &budget, &|_| ())).collect()
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
        fuzz::input(&mut self.plan.subject, &self.plan.places, &mut Unstructured::new(bytes));
    }
}

/// The text of reports that are not all good; places that are not here are named on standard error.
pub(crate) fn failure_text(reports: &[ComponentReport]) -> Option<String> {
    let mut text = Vec::new();
    let mut failed = false;
    for report in reports {
        let mut lines = Vec::new();
        let harmless = report.clone().harmless();
        write_component(&mut lines, &harmless, Paint::default()).expect("memory can be written");
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

#[cfg(test)]
mod tests;
