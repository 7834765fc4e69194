//! A component with all that is declared about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::files::journal::Journaled;
use crate::files::manifest::{Declared, Manifest};
use crate::host::builtin::Builtin;
use crate::patience::Patience;
use shakedown_core::contract::cause::Found;
use shakedown_core::contract::component::{Call, Component, Failure, Returned};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::invariant::{AnyInvariant, Checked};
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::contract::probe::{AnyProbe, Memo};
use shakedown_core::numeric::tolerance::Tolerance;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::Shared;
use shakedown_core::value::yaml::Document;

/// How many random cases follow the corners, unless said otherwise.
pub const DEFAULT_CASES: u64 = 256;

/// How long and with which cases to check.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Random cases after the corners.
    pub cases: u64,
    /// The seed of the random cases.
    pub seed: u64,
    /// Stop after this time, what was kept excepted, and stop shrinking and diagnosing after as
    /// long again; `None` for no limit.
    pub time: Option<Duration>,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { cases: DEFAULT_CASES, seed: 0, time: None }
    }
}

/// A component with all that is declared about it.
pub struct Subject {
    /// Its contract.
    pub contract: &'static dyn AnyContract,
    /// Its name.
    pub name: String,
    /// The batch that its outputs were recorded in, where there is nothing to call.
    pub recorded: Option<String>,
    /// What it gives elsewhere, as a fingerprint, for a finding that has no name.
    pub behaves: Option<String>,
    /// The options in force.
    pub options: Arc<dyn AnyOptions>,
    /// A factor on every tolerance, in the open.
    pub tolerance: f64,
    /// Invariants left out, with the reason.
    pub skip: BTreeMap<String, String>,
    /// Invariants expected to fail, with the reason.
    pub known: BTreeMap<String, String>,
    /// Only these invariants, where the list is not empty.
    pub only: Vec<String>,
    /// The corpora folder, where regressions are; `None` reads none.
    pub corpora: Option<PathBuf>,
    /// Where findings and journals go, if not into the corpora folder.
    pub state: Option<PathBuf>,
    /// The command that calls it again on a kept case, with `{file}` in it, where it is in no
    /// manifest.
    pub replay: Option<String>,
    /// The manifest that declares it, for the commands that a report ends with.
    pub manifest: Option<PathBuf>,
    /// Cases to begin with.
    pub first: Vec<Shared>,
    /// What its report should say of this run besides.
    pub warnings: Vec<String>,
    /// When to stop calling it, in the middle of a case too.
    pub until: Option<Instant>,
    /// The component itself.
    pub component: Journaled,
}

impl Subject {
    /// How a finding without a case file is met again.
    pub fn again(&self) -> String {
        let of_any_case = self.replay.clone().filter(|how| !how.contains("{file}"));
        of_any_case.unwrap_or_else(|| "run this test again".to_owned())
    }

    /// A component with defaults for all that can be declared.
    pub fn new(
        contract: &'static dyn AnyContract,
        name: impl Into<String>,
        component: Box<dyn Component>,
    ) -> Self {
        Subject {
            contract,
            name: name.into(),
            recorded: None,
            behaves: None,
            options: contract.default_options(),
            tolerance: 1.0,
            skip: BTreeMap::new(),
            known: BTreeMap::new(),
            only: Vec::new(),
            corpora: None,
            state: None,
            replay: None,
            manifest: None,
            first: Vec::new(),
            warnings: Vec::new(),
            until: None,
            component: Journaled::new(component),
        }
    }

    /// A component of a manifest, not started yet.
    pub fn declared(manifest: &Manifest, declared: &Declared) -> Self {
        Subject {
            options: Arc::clone(&declared.options),
            tolerance: declared.tolerance,
            skip: declared.skip.clone(),
            known: declared.known.clone(),
            corpora: Some(manifest.corpora().to_owned()),
            manifest: Some(manifest.path().to_owned()),
            ..Subject::new(declared.contract, &*declared.name, manifest.component(declared))
        }
    }

    /// The builtin component `CONTRACT/reference` or `CONTRACT/fault/ID`, under the options under
    /// which it is what its name says.
    ///
    /// # Errors
    /// The name is not known: the message.
    pub fn builtin(contract: &'static dyn AnyContract, name: &str) -> Result<Self, String> {
        let component = Builtin::named(contract, name)?;
        let options = read_options(contract, component.options()).map_err(|e| e.to_string())?;
        Ok(Subject { options, ..Subject::new(contract, name, Box::new(component)) })
    }

    /// The folder that findings and journals go into; `None` writes nothing.
    pub fn state(&self) -> Option<&Path> {
        self.state.as_deref().or(self.corpora.as_deref())
    }

    /// Whether an invariant that breaks is a finding: it was asked for, and nobody has declared
    /// that it is left out or fails.
    pub(crate) fn tells_of(&self, id: &str) -> bool {
        let is_asked = self.only.is_empty() || self.only.iter().any(|one| one == id);
        is_asked && !self.skip.contains_key(id) && !self.known.contains_key(id)
    }

    /// Patience for what follows a finding.
    pub(crate) fn patience(&self) -> Patience {
        Patience::until(self.until)
    }

    /// The tolerance at a place.
    pub fn tolerance_at(&self, place: Place) -> Tolerance {
        Tolerance { dtype: place.dtype, factor: self.tolerance }
    }

    /// Calls the component.
    pub fn call(
        &mut self,
        case: &Shared,
        place: Place,
        gradient: bool,
    ) -> Result<Returned, Failure> {
        self.component.call(&Call { case, options: &self.options, place, gradient })
    }

    /// Checks one invariant on one case with a fresh memory; also gives the case and the failure
    /// of a call that failed.
    pub fn try_case(
        &mut self,
        invariant: &AnyInvariant,
        case: &Shared,
        place: Place,
        calls: &mut u64,
    ) -> Checked {
        self.try_with(invariant, case, place, &mut Memo::default(), calls)
    }

    fn probe<'a>(
        &'a mut self,
        case: &'a Shared,
        place: Place,
        memo: &'a mut Memo,
        calls: &'a mut u64,
    ) -> AnyProbe<'a> {
        let tolerance = self.tolerance_at(place);
        let Subject { contract, options, component, until, .. } = self;
        let mut probe =
            AnyProbe::new(*contract, case, options, place, tolerance, component, memo, calls);
        probe.until = *until;
        probe
    }

    /// Whether the definition is beyond f64 for a case.
    pub(crate) fn is_beyond_f64(&mut self, case: &Shared, place: Place, memo: &mut Memo) -> bool {
        self.probe(case, place, memo, &mut 0).is_beyond_f64()
    }

    /// Asks one invariant about a case.
    pub fn try_with(
        &mut self,
        invariant: &AnyInvariant,
        case: &Shared,
        place: Place,
        memo: &mut Memo,
        calls: &mut u64,
    ) -> Checked {
        let mut probe = self.probe(case, place, memo, calls);
        if probe.is_beyond_f64() {
            return (Err(Stop::Vacuous), None);
        }
        invariant.check(probe)
    }
}

/// The options of a contract that some YAML declares.
///
/// # Errors
/// With line, column and the nearest known name.
pub fn read_options(contract: &dyn AnyContract, yaml: &str) -> Result<Arc<dyn AnyOptions>, Error> {
    contract.read_options(&Document::new(yaml), &[])
}

/// The first case that broke an invariant.
pub struct Broken {
    /// The case.
    pub case: Shared,
    /// What broke.
    pub found: Found,
    /// The number of the case, counted from 1.
    pub at_case: u64,
}
