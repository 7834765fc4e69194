//! One fuzzer at work on one component: every input is checked on every invariant, and each bug is
//! looked into once, however often it is met.

use std::sync::Arc;
use std::time::Instant;

use arbitrary::Unstructured;

use crate::contract::component::Failure;
use crate::contract::coverage;
use crate::contract::invariant::AnyInvariant;
use crate::contract::options::AnyOptions;
use crate::contract::probe::{Memo, Stop};
use crate::engine::check::{Progress, begin, first_cases, nothing_checked};
use crate::engine::diagnose::Diagnoser;
use crate::engine::patience::Patience;
use crate::engine::shrink::shrink_among;
use crate::engine::subject::{Broken, Budget, Subject};
use crate::engine::{finding, stream};
use crate::files::journal::Journal;
use crate::generate::measure::Measure;
use crate::report::{
    ComponentReport, Diagnosis, Finding, InvariantReport, InvariantStatus, Status,
};
use crate::value::error::Error;
use crate::value::place::Place;
use crate::value::record::{Shared, floats};

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
}

/// One bug: an invariant and what is known about why it breaks.
struct Bug {
    invariant: &'static str,
    finding: Finding,
    case: Shared,
    measure: Measure,
    diagnoser: Diagnoser,
    met: u64,
}

impl Session {
    /// Begins with what was in flight when the last run was killed, and with the regressions.
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
            let (report, checked) = begin(&mut subject, *place);
            let mut journal = None;
            if report.reason.is_none() {
                for case in first_cases(&subject, *place)? {
                    first.push((at.len(), case));
                }
                if let Some(corpora) = &subject.corpora {
                    let (name, options) = (&subject.name, &*subject.options);
                    let opened = Journal::open(subject.contract, corpora, name, *place, options);
                    journal = Some(opened?);
                }
            }
            let unexplained = vec![0; subject.contract.invariants().len()];
            let bugs = Vec::new();
            at.push(AtPlace { place: *place, report, checked, journal, bugs, unexplained });
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
        for (index, case) in first {
            let dtype = session.places[index].place.dtype;
            let case = case.rounded(dtype);
            let Subject { contract, options, .. } = &session.subject;
            if contract.valid(&*case, &**options, dtype).is_ok() {
                session.case(index, &case)?;
            }
        }
        Ok(session)
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
        self.case(index, &case)?;
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
        (sum(|at| at.report.cases), sum(|at| at.report.calls), sum(|at| at.bugs.len() as u64))
    }

    fn case(&mut self, index: usize, case: &Shared) -> Result<(), Error> {
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
        let mut broken: Vec<(&'static AnyInvariant, Shared, String)> = Vec::new();
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
                    broken.extend(law.map(|law| (law, case, failure.to_string())));
                }
                _ => {}
            }
        }
        events_of_output(&memo);
        if !self.investigates {
            broken.clear();
        }
        for (invariant, case, found) in broken {
            coverage::paused(|| self.met(index, invariant, case, found, &memo))?;
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
        case: Shared,
        found: String,
        memo: &Memo,
    ) -> Result<(), Error> {
        let Session { subject, places, patience, seed, .. } = self;
        let at = &mut places[index];
        let left_out = |id: &str| !at.checked.iter().any(|progress| progress.invariant.id == id);
        if subject.known.contains_key(invariant.id) || left_out(invariant.id) {
            return Ok(());
        }
        let mut of_invariant: Vec<&mut Bug> =
            at.bugs.iter_mut().filter(|bug| bug.invariant == invariant.id).collect();
        if let Some(Ok(returned)) = &memo.output {
            let explained = of_invariant
                .iter_mut()
                .find(|bug| bug.diagnoser.explains(&bug.finding.diagnosis, &case, returned));
            if let Some(bug) = explained {
                bug.met += 1;
                return Ok(());
            }
        }
        let contract = subject.contract;
        let order = contract.invariants().iter().position(|one| one.id == invariant.id);
        let unexplained = &mut at.unexplained[order.expect("it is one of the contract's")];
        *unexplained += 1;
        let investigate = unexplained.is_power_of_two() && unexplained.ilog2() < INVESTIGATIONS;
        if !investigate || patience.is_over() {
            if let Some(bug) = of_invariant.first_mut() {
                bug.met += 1;
            }
            return Ok(());
        }
        let calls = &mut at.report.calls;
        let broken = Broken { case, found, at_case: at.report.cases };
        let another = |subject: &mut Subject, case: &Shared| {
            let Ok(returned) = subject.call(case, at.place, false) else { return true };
            !of_invariant
                .iter()
                .any(|bug| bug.diagnoser.explains(&bug.finding.diagnosis, case, &returned))
        };
        let shrunk = shrink_among(subject, invariant, broken, at.place, calls, another);
        if let Some(bug) = of_invariant.iter_mut().find(|bug| *bug.case == *shrunk.case) {
            bug.met += 1;
            return Ok(());
        }
        let budget = Budget { seed: *seed, ..Budget::default() };
        let findings = std::slice::from_ref(&shrunk);
        let mut diagnoser = Diagnoser::new(subject, findings, at.place, &budget, calls);
        let diagnosis = diagnoser.faults(&shrunk);
        let classes = diagnoser.classes(subject, &shrunk, &mut Patience::default(), calls);
        let (case, measure) = (Shared::clone(&shrunk.case), contract.measure(&*shrunk.case));
        let known = of_invariant.into_iter().find(|bug| {
            reason(&bug.finding.diagnosis, &bug.finding.found) == reason(&diagnosis, &shrunk.found)
        });
        let mut met = 1;
        if let Some(bug) = known {
            bug.met += 1;
            if bug.measure <= measure {
                return Ok(());
            }
            met = bug.met;
        }
        let finding = finding::write(subject, shrunk, at.place, classes, diagnosis, calls)?;
        let key = |finding: &Finding| reason(&finding.diagnosis, &finding.found).map(str::to_owned);
        at.bugs.retain(|bug| bug.invariant != invariant.id || key(&bug.finding) != key(&finding));
        at.bugs.push(Bug { invariant: invariant.id, finding, case, measure, diagnoser, met });
        Ok(())
    }

    /// What the session says, a report for each place; how often each finding was met stands in a
    /// list beside it.
    pub(crate) fn conclude(mut self) -> Vec<(ComponentReport, Vec<u64>)> {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let places = self.places.drain(..);
        places
            .map(|at| {
                let AtPlace { mut report, checked, bugs, .. } = at;
                report.elapsed_ms = elapsed_ms;
                if self.patience.is_over() {
                    let cases = report.cases;
                    let warning =
                        format!("stopped after {cases} cases: the component {}", self.patience);
                    report.warnings.push(warning);
                }
                for Progress { invariant, cases, .. } in checked {
                    let id = invariant.id;
                    let known = self.subject.known.get(id).cloned();
                    let (status, reason) = match known {
                        Some(why) => (InvariantStatus::Known, Some(why)),
                        None if bugs.iter().any(|bug| bug.invariant == id) => {
                            (InvariantStatus::Fail, None)
                        }
                        None if cases == 0 => (InvariantStatus::Vacuous, None),
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
                if !report.findings.is_empty() {
                    report.status = Status::Fail;
                } else if report.reason.is_none()
                    && !report.invariants.iter().any(|one| one.cases > 0)
                {
                    report.status = Status::Skipped;
                    report.reason = Some(nothing_checked(&report.invariants));
                }
                (report, met)
            })
            .collect()
    }
}

/// Why an invariant breaks, as far as it is known: the first fault of the diagnosis, else the
/// exception.
pub(crate) fn reason<'a>(diagnosis: &'a [Diagnosis], found: &'a str) -> Option<&'a str> {
    let fault = diagnosis.first().map(|diagnosis| &*diagnosis.fault);
    fault.or_else(|| exception(found))
}

/// The type of the exception in `raised ValueError: …`.
pub(crate) fn exception(found: &str) -> Option<&str> {
    found.strip_prefix("raised ")?.split(':').next()
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
