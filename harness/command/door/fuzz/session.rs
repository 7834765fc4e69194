//! One fuzzer at work on one component: every input is checked on every invariant, and each bug is
//! looked into once, however often it is met.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};

use shakedown_core::contract::cause::{Cause, Found};
use shakedown_core::contract::component::Failure;
use shakedown_core::contract::coverage;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::invariant::AnyInvariant;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::contract::probe::Memo;
use shakedown_core::contract::stream;
use shakedown_core::generate::measure::Measure;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{Shared, floats};
use shakedown_engine::check::{Progress, begin, first_cases, unjudged};
use shakedown_engine::diagnose::{Diagnoser, behaviour};
use shakedown_engine::files::case_file::CaseFile;
use shakedown_engine::files::corpora::{found_folder, yaml_files};
use shakedown_engine::files::journal::Journal;
use shakedown_engine::finding;
use shakedown_engine::patience::Patience;
use shakedown_engine::report::bugs::cause;
use shakedown_engine::report::{
    ComponentReport, Cut, Diagnosis, Finding, InvariantReport, InvariantStatus, Status,
};
use shakedown_engine::shrink::shrink_among;
use shakedown_engine::subject::{Broken, Budget, Subject};

/// How often cases of one invariant that no bug of it explains are looked into.
const INVESTIGATIONS: u32 = 12;

/// A component that is being fuzzed.
pub(crate) struct Session {
    subject: Subject,
    /// Whether each input chooses the options, as nobody declared them.
    any_options: bool,
    places: Vec<AtPlace>,
    seed: u64,
    /// Whether what breaks is looked into.
    investigates: bool,
    started: Instant,
    patience: Patience,
}

/// The component at one place.
struct AtPlace {
    place: Place,
    report: ComponentReport,
    checked: Vec<Progress>,
    journal: Option<Journal>,
    bugs: Vec<Bug>,
    /// How often each invariant was broken by what none of its bugs explains.
    unexplained: Vec<u64>,
    /// The invariants that were broken, also those that are known to fail.
    broken: BTreeSet<&'static str>,
    /// What the component gives wrong at this place, once that was asked.
    behaves: Option<String>,
}

/// One bug as one invariant sees it, with what is known about why it breaks.
struct Bug {
    invariant: &'static str,
    /// In what way it breaks it.
    way: Cause,
    finding: Finding,
    case: Shared,
    measure: Measure,
    diagnoser: Diagnoser,
    met: u64,
}

impl Session {
    /// Begins with what was in flight when the last run was killed, with the regressions, and with
    /// what earlier runs found and no report of the fuzzer has.
    ///
    /// # Errors
    /// The journal cannot be written, or a regression cannot be read.
    pub(crate) fn start(
        mut subject: Subject,
        any_options: bool,
        places: &[Place],
        seed: u64,
    ) -> Result<Self, Error> {
        let mut at = Vec::new();
        let mut first = Vec::new();
        for place in places {
            let (report, checked) = begin(&mut subject, *place, any_options);
            let mut journal = None;
            if report.reason.is_none() {
                for case in first_cases(&subject, *place)? {
                    first.push((at.len(), case, None));
                }
                for file in unreported(&subject, *place) {
                    first.push((at.len(), file.case, Some(file.options)));
                }
                if let Some(state) = subject.state() {
                    let (name, options) = (&subject.name, &*subject.options);
                    let opened = Journal::open(subject.contract, state, name, *place, options);
                    journal = Some(opened?);
                }
            }
            let unexplained = vec![0; subject.contract.invariants().len()];
            let (bugs, broken) = (Vec::new(), BTreeSet::new());
            let place = *place;
            let behaves = None;
            let at_place =
                AtPlace { place, report, checked, journal, bugs, unexplained, broken, behaves };
            at.push(at_place);
        }
        let mut session = Session {
            subject,
            any_options,
            places: at,
            seed,
            investigates: true,
            started: Instant::now(),
            patience: Patience::default(),
        };
        let declared = Arc::clone(&session.subject.options);
        for (index, case, found_under) in first {
            let dtype = session.places[index].place.dtype;
            let case = case.rounded(dtype);
            let unreported = found_under.is_some();
            session.subject.options = match found_under {
                Some(options) if any_options => options,
                _ => Arc::clone(&declared),
            };
            let Subject { contract, options, .. } = &session.subject;
            if contract.valid(&*case, &**options, dtype).is_ok() {
                session.case(index, &case, unreported)?;
            }
        }
        session.subject.options = declared;
        Ok(session)
    }

    /// The contract's name.
    pub(crate) fn contract(&self) -> &'static str {
        self.subject.contract.id()
    }

    /// The same, for the sake of what happens alone: nothing that breaks is looked into.
    pub(crate) fn dry(self) -> Self {
        Session { investigates: false, ..self }
    }

    /// Checks what some bytes stand for; says whether they stand for a case.
    ///
    /// # Errors
    /// A finding or the journal cannot be written.
    pub(crate) fn input(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        let Some((options, index, case)) = self.drawn(&mut Unstructured::new(bytes)) else {
            return Ok(false);
        };
        let dtype = self.places[index].place.dtype;
        if self.subject.contract.valid(&*case, &*options, dtype).is_err() {
            return Ok(false);
        }
        self.subject.options = options;
        self.case(index, &case, false)?;
        Ok(true)
    }

    /// How many of the bytes stand for a case.
    pub(crate) fn read(&self, bytes: &[u8]) -> usize {
        let mut u = Unstructured::new(bytes);
        // The same draws as in `input`, for their effect on `u`.
        let _ = self.drawn(&mut u);
        bytes.len() - u.len()
    }

    /// Options, place and case from bytes.
    fn drawn(&self, u: &mut Unstructured<'_>) -> Option<(Arc<dyn AnyOptions>, usize, Shared)> {
        let options = match self.any_options {
            true => self.subject.contract.draw_options(u).ok()?,
            false => Arc::clone(&self.subject.options),
        };
        let ready = |index: &usize| self.places[*index].report.reason.is_none();
        let ready: Vec<usize> = (0..self.places.len()).filter(ready).collect();
        let index = *u.choose(&ready).ok()?;
        let dtype = self.places[index].place.dtype;
        let case = stream::from_unstructured(self.subject.contract, u, &*options, dtype);
        Some((options, index, case))
    }

    /// Whether there is no use in going on: the component hangs or dies, or is nowhere.
    pub(crate) fn is_over(&self) -> bool {
        self.patience.is_over() || self.places.iter().all(|at| at.report.reason.is_some())
    }

    /// Cases and calls so far, and bugs.
    pub(crate) fn progress(&self) -> (u64, u64, u64) {
        let sum = |of: fn(&AtPlace) -> u64| self.places.iter().map(of).sum();
        let causes = |at: &AtPlace| {
            let causes: BTreeSet<String> = at.bugs.iter().map(|bug| cause(&bug.finding)).collect();
            causes.len() as u64
        };
        (sum(|at| at.report.cases), sum(|at| at.report.calls), sum(causes))
    }

    /// Checks one case. Where it was found and never `unreported`, what it breaks is looked into
    /// whatever it takes.
    fn case(&mut self, index: usize, case: &Shared, unreported: bool) -> Result<(), Error> {
        let at = &mut self.places[index];
        let place = at.place;
        at.report.cases += 1;
        for class in self.subject.contract.classes() {
            if class.contains(&**case, &*self.subject.options) {
                *at.report.classes.entry(class.id.to_owned()).or_default() += 1;
                coverage::event(&["class", class.id]);
            }
        }
        self.subject.component.journal = at.journal.take();
        coverage::follow_next();
        let mut memo = Memo::default();
        let mut broken: Vec<(&'static AnyInvariant, Shared, Found)> = Vec::new();
        for progress in &mut at.checked {
            if self.patience.is_over() {
                break;
            }
            let invariant = progress.invariant;
            let applies = !self.any_options || invariant.applies(&*self.subject.options, place);
            if !applies {
                continue;
            }
            let calls_before = at.report.calls;
            let (outcome, failed) =
                self.subject.try_with(invariant, case, place, &mut memo, &mut at.report.calls);
            if let (Some((_, failure)), true) = (&failed, at.report.calls > calls_before) {
                self.patience.spend(failure);
            }
            let word = match outcome {
                Ok(()) => "holds",
                Err(Stop::Vacuous) => "says nothing",
                Err(Stop::Broken(_)) => "broken",
                Err(Stop::Failed) => "failed",
            };
            coverage::event(&[invariant.id, word]);
            match (outcome, failed) {
                (Ok(()), _) => progress.cases += 1,
                (Err(Stop::Broken(found)), _) => {
                    progress.cases += 1;
                    broken.push((invariant, Shared::clone(case), found));
                }
                (Err(Stop::Failed), Some((case, failure))) => {
                    let law = self.subject.contract.invariant(failure.law());
                    // Relations fail for the same reason as the law; one is enough.
                    let law = law.filter(|law| !broken.iter().any(|(one, ..)| one.id == law.id));
                    broken.extend(law.map(|law| (law, case, failure.found())));
                }
                _ => {}
            }
        }
        events_of_output(&memo);
        at.broken.extend(broken.iter().map(|(invariant, ..)| invariant.id));
        if !self.investigates {
            broken.clear();
        }
        for (invariant, case, found) in broken {
            let broken = Broken { case, found, at_case: self.places[index].report.cases };
            coverage::paused(|| {
                let other = self.met(index, invariant, broken, unreported, &memo)?;
                // What broke in another way on the way to a smallest case is looked into as well.
                match other {
                    Some(other) => {
                        self.met(index, invariant, other, true, &Memo::default()).map(drop)
                    }
                    None => Ok(()),
                }
            })?;
        }
        let at = &mut self.places[index];
        let written = self.subject.component.check_journal();
        at.journal = self.subject.component.journal.take();
        written
    }

    /// A case broke an invariant: counts it where the reason is known, looks into it where not.
    fn met(
        &mut self,
        index: usize,
        invariant: &'static AnyInvariant,
        broken: Broken,
        unreported: bool,
        memo: &Memo,
    ) -> Result<Option<Broken>, Error> {
        let Session { subject, any_options, places, patience, seed, .. } = self;
        let at = &mut places[index];
        let left_out = |id: &str| !at.checked.iter().any(|progress| progress.invariant.id == id);
        if subject.known.contains_key(invariant.id) || left_out(invariant.id) {
            return Ok(None);
        }
        let mut of_invariant: Vec<&mut Bug> =
            at.bugs.iter_mut().filter(|bug| bug.invariant == invariant.id).collect();
        if let Some(Ok(returned)) = &memo.output {
            let explained = of_invariant
                .iter_mut()
                .find(|bug| bug.diagnoser.explains(&bug.finding.diagnosis, &broken.case, returned));
            if let Some(bug) = explained {
                bug.met += 1;
                return Ok(None);
            }
        }
        let contract = subject.contract;
        let order = contract.invariants().iter().position(|one| one.id == invariant.id);
        let unexplained = &mut at.unexplained[order.expect("it is one of the contract's")];
        *unexplained += 1;
        let rare = unexplained.is_power_of_two() && unexplained.ilog2() < INVESTIGATIONS;
        if !(rare || unreported) || patience.is_over() {
            if let Some(bug) = of_invariant.first_mut() {
                bug.met += 1;
            }
            return Ok(None);
        }
        let calls = &mut at.report.calls;
        let another = |subject: &mut Subject, case: &Shared| {
            let Ok(returned) = subject.call(case, at.place, false) else { return true };
            !of_invariant
                .iter()
                .any(|bug| bug.diagnoser.explains(&bug.finding.diagnosis, case, &returned))
        };
        let mut shrunk = shrink_among(subject, invariant, broken, at.place, calls, another);
        let other = shrunk.other.take();
        if let Some(bug) = of_invariant.iter_mut().find(|bug| *bug.case == *shrunk.case) {
            bug.met += 1;
            return Ok(other);
        }
        let budget = Budget { seed: *seed, ..Budget::default() };
        let findings = std::slice::from_ref(&shrunk);
        let mut diagnoser = Diagnoser::new(subject, findings, at.place, &budget, calls);
        let diagnosis = diagnoser.faults(&shrunk);
        let (classes, _) = diagnoser.classes(subject, &shrunk, &mut Patience::default(), calls);
        let (case, measure) = (Shared::clone(&shrunk.case), contract.measure(&*shrunk.case));
        let way = shrunk.found.cause();
        let why = reason(&diagnosis, &way);
        let known = of_invariant.into_iter().find(|bug| bug.is_why(&why, &way));
        let mut met = 1;
        if let Some(bug) = known {
            bug.met += 1;
            if bug.measure <= measure {
                return Ok(other);
            }
            met = bug.met;
        }
        if why.is_none() {
            let options = Arc::clone(&subject.options);
            if *any_options {
                subject.options = contract.default_options();
            }
            let asked = || behaviour(subject, at.place, calls);
            let behaves = at.behaves.get_or_insert_with(asked).clone();
            (subject.options, subject.behaves) = (options, Some(behaves));
        }
        let (mut finding, mut file) =
            finding::make(subject, shrunk, at.place, classes, diagnosis, calls);
        finding::note_state(subject, &mut [&mut finding], &mut file, at.place, calls);
        (finding.case_file, finding.replay) = finding::keep(subject, &file);
        subject.behaves = None;
        let why = reason(&finding.diagnosis, &way);
        at.bugs.retain(|bug| bug.invariant != invariant.id || !bug.is_why(&why, &way));
        let invariant = invariant.id;
        at.bugs.push(Bug { invariant, way, finding, case, measure, diagnoser, met });
        Ok(other)
    }

    /// What the session says, a report for each place.
    pub(crate) fn conclude(mut self) -> Vec<AtOnePlace> {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let places = self.places.drain(..);
        // What could not be kept is said once.
        let mut lost = std::mem::take(&mut self.subject.warnings);
        lost.sort();
        lost.dedup();
        places
            .map(|at| {
                let AtPlace { mut report, checked, bugs, broken, behaves, .. } = at;
                report.elapsed_ms = elapsed_ms;
                report.warnings.append(&mut lost);
                report.cut = self.patience.why();
                if report.cut == Some(Cut::GaveUp) {
                    let cases = report.cases;
                    let warning =
                        format!("stopped after {cases} cases: the component {}", self.patience);
                    report.warnings.push(warning);
                }
                for Progress { invariant, cases, .. } in checked {
                    let id = invariant.id;
                    let known = self.subject.known.get(id).cloned();
                    let (status, reason) = match known {
                        Some(why) if broken.contains(id) => (InvariantStatus::Known, Some(why)),
                        _ if cases == 0 && !broken.contains(id) => (InvariantStatus::Vacuous, None),
                        Some(why) => (InvariantStatus::Fail, Some(known_holds(&why))),
                        None if bugs.iter().any(|bug| bug.invariant == id) => {
                            (InvariantStatus::Fail, None)
                        }
                        None if broken.contains(id) => {
                            (InvariantStatus::Fail, Some(NO_TIME.to_owned()))
                        }
                        None => (InvariantStatus::Pass, None),
                    };
                    let id = id.to_owned();
                    report.invariants.push(InvariantReport { id, status, cases, reason });
                }
                let order = self.subject.contract.invariants();
                let order = |id: &str| order.iter().position(|invariant| invariant.id == id);
                report.invariants.sort_by_key(|invariant| order(&invariant.id));
                let (findings, met): (Vec<_>, Vec<_>) =
                    bugs.into_iter().map(|bug| (bug.finding, bug.met)).unzip();
                report.findings = findings;
                let fails = |one: &InvariantReport| one.status == InvariantStatus::Fail;
                if report.invariants.iter().any(fails) {
                    report.status = Status::Fail;
                } else if report.reason.is_none()
                    && !report.invariants.iter().any(|one| one.cases > 0)
                {
                    let (status, reason) = unjudged(&report.invariants);
                    (report.status, report.reason) = (status, Some(reason));
                }
                AtOnePlace { report, met, behaves }
            })
            .collect()
    }
}

/// What a session says of one place.
#[derive(Deserialize, Serialize)]
pub(crate) struct AtOnePlace {
    pub(crate) report: ComponentReport,
    /// How often each finding was met.
    pub(crate) met: Vec<u64>,
    /// What the component gives wrong, as a fingerprint, where a finding has no name.
    pub(crate) behaves: Option<String>,
}

impl Bug {
    /// Whether it breaks for this reason; where there is none, in the same way.
    fn is_why(&self, why: &Option<String>, way: &Cause) -> bool {
        let own = reason(&self.finding.diagnosis, &self.way);
        own == *why && (why.is_some() || self.way.is_like(way))
    }
}

/// The cases of a component at a place that earlier runs found and no report of the fuzzer has.
fn unreported(subject: &Subject, place: Place) -> Vec<CaseFile> {
    let Some(state) = subject.state() else { return Vec::new() };
    let files = kept(subject.contract, state, &subject.name).into_iter();
    let files = files.map(|(_, file)| file);
    files.filter(|file| !file.reported && file.place == Some(place)).collect()
}

/// The case files of a component in its `found` folder, with their paths.
pub(crate) fn kept(
    contract: &'static dyn AnyContract,
    corpora: &Path,
    component: &str,
) -> Vec<(PathBuf, CaseFile)> {
    let kept = yaml_files(&found_folder(corpora, contract.id())).into_iter().filter_map(|path| {
        // What cannot be read is no finding of this component; `replay` says what is wrong with it.
        let file = CaseFile::read_of(contract, &path).ok()?;
        let ours = file.component.as_deref() == Some(component) && file.invariant.is_some();
        ours.then_some((path, file))
    });
    kept.collect()
}

/// Why an invariant breaks, as far as it is known: the first fault of the diagnosis, else the
/// exception.
pub(crate) fn reason(diagnosis: &[Diagnosis], way: &Cause) -> Option<String> {
    let fault = diagnosis.first().map(|diagnosis| diagnosis.fault.clone());
    fault.or_else(|| way.exception().map(str::to_owned))
}

/// What is said of an invariant that broke when it was too late to look into that.
const NO_TIME: &str = "was broken, and there was no time to look into it";

/// What is said of an invariant that is declared to fail, and holds.
fn known_holds(why: &str) -> String {
    format!("holds, but is declared to fail (known: {why})")
}

/// What kinds of numbers came out, and where the definition leaves them open.
fn events_of_output(memo: &Memo) {
    match &memo.output {
        None => {}
        Some(Err(Failure::Raised { message, .. })) => {
            coverage::event(&["raised", message.split(':').next().unwrap_or("")]);
        }
        Some(Err(failure)) => coverage::event(&["failed", failure.law()]),
        Some(Ok(returned)) => {
            for (name, numbers) in floats(&*returned.output) {
                let mut seen: Vec<&str> = numbers.iter().map(|x| kind(*x)).collect();
                seen.sort_unstable();
                seen.dedup();
                seen.iter().for_each(|kind| coverage::event(&["output", name, kind]));
            }
        }
    }
    for expected in memo.expected.iter().flat_map(|expected| expected.iter()) {
        let mut seen: Vec<&str> = expected
            .numbers
            .iter()
            .map(|number| if number.scale.is_infinite() { "open" } else { kind(number.value) })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen.iter().for_each(|kind| coverage::event(&["oracle", expected.field, kind]));
    }
}

/// The kind of a number, as bugs tell them apart.
fn kind(x: f64) -> &'static str {
    match x {
        x if x.is_nan() => "NaN",
        f64::INFINITY => "infinity",
        f64::NEG_INFINITY => "-infinity",
        0.0 => "zero",
        1.0 => "one",
        x if x.abs() < 1e-30 => "tiny",
        x if x.abs() > 1e30 => "huge",
        x if x < 0.0 => "negative",
        _ => "positive",
    }
}

#[cfg(test)]
mod tests;
