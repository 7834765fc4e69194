//! A component with all that is declared about it.

/// How many random cases follow the corners, unless said otherwise.
pub const DEFAULT_CASES: u64 = 256;

/// How long and with which cases to check.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Random cases after the corners.
    pub cases: u64,
    /// The seed of the random cases.
    pub seed: u64,
    /// Stop drawing cases after this time; `None` for no limit.
    pub time: Option<Duration>,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { cases: DEFAULT_CASES, seed: 0, time: None }
    }
}

/// A component of the contract `C` with all that is declared about it.
pub struct Subject<C: Contract> {
    /// Its name.
    pub name: String,
    /// The options in force.
    pub options: C::Options,
    /// A factor on every tolerance, in the open.
    pub tolerance: f64,
    /// Invariants left out, with the reason.
    pub skip: BTreeMap<String, String>,
    /// Invariants expected to fail, with the reason.
    pub known: BTreeMap<String, String>,
    /// Only these invariants, where the list is not empty.
    pub only: Vec<String>,
    /// The corpora folder, where findings and journals go and regressions are; `None` writes and
    /// reads nothing.
    pub corpora: Option<PathBuf>,
    /// The manifest that declares it, for the commands that a report ends with.
    pub manifest: Option<PathBuf>,
    /// Cases to begin with.
    pub first: Vec<C::Case>,
    /// The component itself.
    pub component: Box<dyn Component<C>>,
    /// Where the case of each call is put before it is made.
    pub(crate) journal: Option<Journal>,
}

impl<C: Contract> Subject<C> {
    /// A component with defaults for all that can be declared.
    pub fn new(name: impl Into<String>, component: impl Component<C> + 'static) -> Self {
        Subject {
            name: name.into(),
            options: C::Options::default(),
            tolerance: 1.0,
            skip: BTreeMap::new(),
            known: BTreeMap::new(),
            only: Vec::new(),
            corpora: None,
            manifest: None,
            first: Vec::new(),
            component: Box::new(component),
            journal: None,
        }
    }

    /// The tolerance at a place.
    pub fn tolerance_at(&self, place: Place) -> Tolerance {
        Tolerance { dtype: place.dtype, factor: self.tolerance }
    }

    /// Calls the component.
    pub(crate) fn call(
        &mut self,
        case: &C::Case,
        place: Place,
        gradient: bool,
    ) -> Result<Returned<C>, Failure> {
        if let Some(journal) = &mut self.journal {
            journal.note(case);
        }
        self.component.call(&Call { case, options: &self.options, place, gradient })
    }

    /// Checks one invariant on one case with a fresh memory; also gives the case and the failure
    /// of a call that failed.
    pub fn try_case(
        &mut self,
        invariant: &Invariant<C>,
        case: &C::Case,
        place: Place,
        calls: &mut u64,
    ) -> (Outcome, Option<(C::Case, Failure)>) {
        self.try_with(invariant, case, place, &mut Memo::default(), calls)
    }

    pub(crate) fn try_with(
        &mut self,
        invariant: &Invariant<C>,
        case: &C::Case,
        place: Place,
        memo: &mut Memo<C>,
        calls: &mut u64,
    ) -> (Outcome, Option<(C::Case, Failure)>) {
        let tolerance = self.tolerance_at(place);
        let mut probe = Probe {
            case,
            options: &self.options,
            place,
            tolerance,
            pick: Pick::of(case),
            failed: None,
            component: &mut *self.component,
            journal: self.journal.as_mut(),
            memo,
            calls,
        };
        let outcome = (invariant.check)(&mut probe);
        (outcome, probe.failed)
    }
}

/// The first case that broke an invariant.
pub(crate) struct Broken<C: Contract> {
    pub(crate) case: C::Case,
    pub(crate) found: String,
    pub(crate) at_case: u64,
}
