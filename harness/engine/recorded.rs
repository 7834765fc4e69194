//! Recorded outputs, checked without the component that gave them.
//!
//! A record answers one call and no other. So of the invariants only those that need that call
//! alone are checked, and a sub-batch is a record of its own only where its rows have no influence
//! on the others.

use std::path::Path;
use std::time::Instant;

use crate::files::batch::Batch;
use crate::engine::check::blank_report;
use crate::engine::subject::Subject;
use crate::contract::component::{Call, Component, Failure, Gradients, Returned};
use crate::contract::Contract;
use crate::contract::cuts::{Cuts, Pair};
use crate::engine::cut_down::{fewest, places};
use crate::engine::diagnose;
use crate::engine::diagnose::Diagnoser;
use crate::value::error::Error;
use crate::engine::finding;
use crate::engine::shrink::Shrunk;
use crate::contract::invariant::Invariant;
use crate::contract::probe::{Memo, Probe, Stop};
use crate::generate::pick::Pick;
use crate::value::place::Place;
use crate::value::record::{Record as _, same_bits};
use crate::report::{ComponentReport, InvariantReport, InvariantStatus, Status};
use crate::numeric::tolerance::Tolerance;

/// The laws that speak about a call and not about what it gives.
const ABOUT_THE_CALL: [&str; 4] = ["total", "in-time", "survives", "pure"];

/// Rows named in a message at the most.
const ROWS_NAMED: usize = 16;

/// Sub-batches that are tried for one finding at the most.
const CANDIDATES: u64 = 3000;

/// Sub-batches on which a finding is compared with faults at the most.
const COMPARED: usize = 160;

/// Outputs that were recorded for a case under options.
struct Record<C: Contract> {
    case: C::Case,
    options: C::Options,
    plain: Option<C::Output>,
    with_gradient: Option<C::Output>,
    asked_elsewhere: bool,
}

impl<C: Contract> Record<C> {
    fn new(case: &C::Case, output: &C::Output, options: &C::Options) -> Self {
        Record {
            case: case.clone(),
            options: options.clone(),
            plain: Some(output.clone()),
            with_gradient: Some(output.clone()),
            asked_elsewhere: false,
        }
    }
}

impl<C: Contract> Component<C> for Record<C> {
    /// Gives what was recorded, once: a second time it would be the same of necessity.
    fn call(&mut self, call: &Call<'_, C>) -> Result<Returned<C>, Failure> {
        let kept = if call.gradient { &mut self.with_gradient } else { &mut self.plain };
        let same = *call.options == self.options && same_bits(call.case, &self.case);
        match kept.take() {
            Some(output) if same => {
                Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
            }
            _ => {
                self.asked_elsewhere = true;
                let message = "only one call is recorded".to_owned();
                Err(Failure::Raised { message, traceback: String::new() })
            }
        }
    }

    fn gradients(&self, _: Place) -> Gradients {
        let any = |output: &C::Output| {
            let values = output.values();
            values.iter().any(|(name, value)| name.starts_with("grad_") && value.is_some())
        };
        match [&self.plain, &self.with_gradient].into_iter().flatten().any(any) {
            true => Gradients::Returned,
            false => Gradients::None("no gradient is recorded".to_owned()),
        }
    }
}

/// What a record says of an invariant.
enum Verdict {
    Holds,
    Vacuous,
    Broken(String),
    NeedsOtherCalls,
}

/// A batch whose recorded outputs are checked.
struct Check<'a, C: Contract> {
    case: &'a C::Case,
    output: &'a C::Output,
    options: &'a C::Options,
    place: Place,
}

/// Checks the recorded outputs of a batch, under the name of its file; `None` where there are none.
/// Findings go into the corpora folder.
///
/// # Errors
/// A finding cannot be written. What is wrong with the outputs is in the report.
pub fn check<C: Contract>(
    name: &str,
    batch: &Batch<C>,
    options: &C::Options,
    place: Place,
    corpora: &Path,
) -> Result<Option<ComponentReport>, Error> {
    let Some(output) = &batch.recorded else { return Ok(None) };
    let started = Instant::now();
    let check = Check { case: &batch.case, output, options, place };
    let mut report = blank_report::<C>(name, place);
    report.cases = 1;
    report.calls = 1;
    let mut broken = Vec::new();
    let mut elsewhere = Vec::new();
    for invariant in C::invariants() {
        let (status, reason) = match check.left_out(&invariant) {
            Some(why) => (InvariantStatus::Skipped, Some(why)),
            None => match check.verdict(&invariant, check.case, check.output) {
                Verdict::Holds => (InvariantStatus::Pass, None),
                Verdict::Vacuous => (InvariantStatus::Vacuous, None),
                Verdict::NeedsOtherCalls => {
                    elsewhere.push(invariant.id);
                    let why = "it asks for other calls, and only one is recorded".to_owned();
                    (InvariantStatus::Skipped, Some(why))
                }
                Verdict::Broken(found) => {
                    broken.push((invariant, found));
                    (InvariantStatus::Fail, None)
                }
            },
        };
        let cases = u64::from(matches!(status, InvariantStatus::Pass | InvariantStatus::Fail));
        let id = invariant.id.to_owned();
        report.invariants.push(InvariantReport { id, status, cases, reason });
    }
    for class in C::classes() {
        let within = u64::from((class.contains)(check.case, options));
        report.classes.insert(class.id.to_owned(), within);
    }
    if !elsewhere.is_empty() {
        let ids = elsewhere.join(", ");
        let why = "these ask for other calls than the recorded one, and were not checked";
        report.warnings.push(format!("{why}: {ids}"));
    }
    check.conclude(broken, corpora, &mut report)?;
    if report.status == Status::Pass && !report.invariants.iter().any(|one| one.cases > 0) {
        report.status = Status::Skipped;
        report.reason = Some("no invariant speaks about this one recorded call".to_owned());
    }
    report.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Some(report))
}

impl<C: Contract> Check<'_, C> {
    /// Why an invariant is not checked on a record, where it is not.
    fn left_out(&self, invariant: &Invariant<C>) -> Option<String> {
        if !(invariant.applies)(self.options, self.place) {
            return Some("does not apply under these options at this place".to_owned());
        }
        if ABOUT_THE_CALL.contains(&invariant.id) {
            return Some("it speaks about the call, of which only the outputs are here".to_owned());
        }
        let record = Record::<C>::new(self.case, self.output, self.options);
        match record.gradients(self.place) {
            Gradients::None(why) if invariant.needs_gradient => Some(why),
            _ => None,
        }
    }

    /// What the recorded outputs of a case, or of a part of it, say of an invariant.
    fn verdict(&self, invariant: &Invariant<C>, case: &C::Case, output: &C::Output) -> Verdict {
        let mut record = Record::new(case, output, self.options);
        let mut probe = Probe {
            case,
            options: self.options,
            place: self.place,
            tolerance: Tolerance { dtype: self.place.dtype, factor: 1.0 },
            pick: Pick::of(case),
            failed: None,
            component: &mut record,
            journal: None,
            memo: &mut Memo::default(),
            calls: &mut 0,
        };
        let outcome = (invariant.check)(&mut probe);
        match outcome {
            _ if record.asked_elsewhere => Verdict::NeedsOtherCalls,
            Ok(()) => Verdict::Holds,
            Err(Stop::Broken(found)) => Verdict::Broken(found),
            // A wrong shape: the law `well-formed` says so.
            Err(Stop::Vacuous | Stop::Failed) => Verdict::Vacuous,
        }
    }

    /// Cuts what broke to the fewest rows, compares it with the faults and writes it down.
    fn conclude(
        &self,
        broken: Vec<(Invariant<C>, String)>,
        corpora: &Path,
        report: &mut ComponentReport,
    ) -> Result<(), Error> {
        if broken.is_empty() {
            return Ok(());
        }
        report.status = Status::Fail;
        let cut: Vec<_> = broken
            .into_iter()
            .map(|(invariant, found)| self.fewest_rows(invariant, found))
            .collect();
        // A smallest part is one of all parts: counted twice, it would say more than it does.
        let mut records = self.parts();
        for (Shrunk { case, .. }, output) in &cut {
            if !records.iter().any(|(known, _)| same_bits(known, case)) {
                records.insert(0, (case.clone(), output.clone()));
            }
        }
        records.truncate(COMPARED);
        let mut diagnoser = Diagnoser::of_records(records.clone(), self.options, self.place);
        for (shrunk, output) in cut {
            let diagnosis = diagnoser.faults(&shrunk);
            let tried = records.iter().filter_map(|(case, output)| {
                match self.verdict(&shrunk.invariant, case, output) {
                    Verdict::Holds => Some((case, false)),
                    Verdict::Broken(_) => Some((case, true)),
                    Verdict::Vacuous | Verdict::NeedsOtherCalls => None,
                }
            });
            let outcomes: Vec<(&C::Case, bool)> = tried.collect();
            let classes = diagnose::classes::<C>(&shrunk.case, &outcomes, self.options);
            let record = Record::new(&shrunk.case, &output, self.options);
            let mut subject = Subject::new(report.name.clone(), record);
            subject.options = self.options.clone();
            subject.corpora = Some(corpora.to_owned());
            let mut finding =
                finding::write(&mut subject, shrunk, self.place, classes, diagnosis, &mut 0)?;
            if let Some(path) = &finding.case_file {
                finding.replay = format!("shakedown replay {path} --manifest …");
            }
            report.calls = report.calls.max(finding.shrink_calls);
            report.findings.push(finding);
        }
        Ok(())
    }

    /// The fewest parts of the batch whose recorded outputs still break an invariant; the whole
    /// batch where rows have an influence on each other, or an output has no rows.
    fn fewest_rows(&self, invariant: Invariant<C>, mut found: String) -> (Shrunk<C>, C::Output) {
        let whole = (self.case.clone(), self.output.clone());
        let mut tried = 0;
        let mut smallest = None;
        if let Some((cuts, parts)) = self.independent() {
            let count = parts.len();
            let kept = fewest(parts, &mut |rows| {
                if tried == CANDIDATES {
                    return None;
                }
                tried += 1;
                let Some((case, output)) = cuts.part(self.case, self.output, rows) else {
                    return Some(false);
                };
                if C::valid(&case, self.options, self.place.dtype).is_err() {
                    return Some(false);
                }
                match self.verdict(&invariant, &case, &output) {
                    Verdict::Broken(message) => {
                        found = message;
                        Some(true)
                    }
                    _ => Some(false),
                }
            });
            let rows = places(&kept);
            if kept.len() < count {
                smallest = cuts.part(self.case, self.output, &rows);
                if rows.len() <= ROWS_NAMED {
                    found = format!("{found}\nrows {rows:?} of the batch");
                }
            }
        }
        let (case, output) = smallest.unwrap_or(whole);
        (Shrunk { invariant, case, found, at_case: 1, tried }, output)
    }

    fn independent(&self) -> Option<(Cuts<C>, Vec<Vec<usize>>)> {
        let cuts = C::cuts()?;
        let parts = cuts.parts(self.case, self.options)?;
        Some((cuts, parts))
    }

    /// The parts of the batch that are records of their own, or the whole.
    fn parts(&self) -> Vec<Pair<C>> {
        let whole = || vec![(self.case.clone(), self.output.clone())];
        let Some((cuts, parts)) = self.independent() else { return whole() };
        let spread = parts.iter().step_by(parts.len().div_ceil(COMPARED).max(1));
        let of = |rows: &Vec<usize>| cuts.part(self.case, self.output, rows);
        spread.map(of).collect::<Option<Vec<_>>>().unwrap_or_else(whole)
    }
}
