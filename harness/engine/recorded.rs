//! Recorded outputs, checked without the component that gave them.
//!
//! A record answers one call and no other. So of the invariants only those that need that call
//! alone are checked, and a sub-batch is a record of its own only where its rows have no influence
//! on the others.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::check::blank_report;
use crate::cut_down::{fewest, places};
use crate::diagnose::{self, Diagnoser};
use crate::files::batch::Batch;
use crate::finding;
use crate::report::{ComponentReport, InvariantReport, InvariantStatus, Status};
use crate::shrink::Shrunk;
use crate::subject::Subject;
use shakedown_core::contract::cause::Found;
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::contract::cuts::{Cuts, Pair};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::invariant::AnyInvariant;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::contract::probe::{AnyProbe, Memo};
use shakedown_core::numeric::tolerance::Tolerance;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{Shared, same_bits};

/// The laws that speak about a call and not about what it gives.
const ABOUT_THE_CALL: [&str; 4] =
    ["does-not-raise", "within-time-limit", "does-not-crash", "inputs-unchanged"];

/// Rows named in a message at the most.
const ROWS_NAMED: usize = 16;

/// Sub-batches that are tried for one finding at the most.
const CANDIDATES: u64 = 3000;

/// Sub-batches on which a finding is compared with faults at the most.
const COMPARED: usize = 160;

/// Outputs that were recorded for a case under options.
struct Answered {
    case: Shared,
    options: Arc<dyn AnyOptions>,
    plain: Option<Shared>,
    with_gradient: Option<Shared>,
    asked_elsewhere: bool,
}

impl Answered {
    fn new(case: &Shared, output: &Shared, options: &Arc<dyn AnyOptions>) -> Self {
        Answered {
            case: case.clone(),
            options: options.clone(),
            plain: Some(output.clone()),
            with_gradient: Some(output.clone()),
            asked_elsewhere: false,
        }
    }
}

impl Component for Answered {
    /// Gives what was recorded, once: a second time it would be the same of necessity.
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let kept = if call.gradient { &mut self.with_gradient } else { &mut self.plain };
        let same = **call.options == *self.options && same_bits(&**call.case, &*self.case);
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
        let any = |output: &Shared| {
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
    Broken(Found),
    NeedsOtherCalls,
}

/// A batch whose recorded outputs are checked.
struct RecordedBatch<'a> {
    contract: &'static dyn AnyContract,
    case: &'a Shared,
    output: &'a Shared,
    options: &'a Arc<dyn AnyOptions>,
    place: Place,
}

/// Checks the recorded outputs of a batch, under the name of its file; `None` where there are none.
/// Findings go into the corpora folder.
///
/// # Errors
/// A finding cannot be written. What is wrong with the outputs is in the report.
pub fn check(
    name: &str,
    batch: &Batch,
    options: &Arc<dyn AnyOptions>,
    place: Place,
    corpora: &Path,
) -> Result<Option<ComponentReport>, Error> {
    let Some(output) = &batch.recorded else { return Ok(None) };
    let started = Instant::now();
    let contract = batch.contract;
    let check = RecordedBatch { contract, case: &batch.case, output, options, place };
    let mut report = blank_report(contract, name, place);
    report.cases = 1;
    report.calls = 1;
    let mut broken = Vec::new();
    let mut elsewhere = Vec::new();
    for invariant in contract.invariants() {
        let (status, reason) = match check.left_out(invariant) {
            Some(why) => (InvariantStatus::Skipped, Some(why)),
            None => match check.verdict(invariant, check.case, check.output) {
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
    for class in contract.classes() {
        let within = u64::from(class.contains(&**check.case, &**options));
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

impl RecordedBatch<'_> {
    /// Why an invariant is not checked on a record, where it is not.
    fn left_out(&self, invariant: &AnyInvariant) -> Option<String> {
        if !invariant.applies(&**self.options, self.place) {
            return Some("does not apply under these options at this place".to_owned());
        }
        if ABOUT_THE_CALL.contains(&invariant.id) {
            return Some("it speaks about the call, of which only the outputs are here".to_owned());
        }
        let record = Answered::new(self.case, self.output, self.options);
        match record.gradients(self.place) {
            Gradients::None(why) if invariant.needs_gradient => Some(why),
            _ => None,
        }
    }

    /// What the recorded outputs of a case, or of a part of it, say of an invariant.
    fn verdict(&self, invariant: &AnyInvariant, case: &Shared, output: &Shared) -> Verdict {
        let mut record = Answered::new(case, output, self.options);
        let tolerance = Tolerance { dtype: self.place.dtype, factor: 1.0 };
        let (mut memo, mut calls) = (Memo::default(), 0);
        let (outcome, _) = invariant.check(AnyProbe::new(
            self.contract,
            case,
            self.options,
            self.place,
            tolerance,
            &mut record,
            &mut memo,
            &mut calls,
        ));
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
        broken: Vec<(&'static AnyInvariant, Found)>,
        corpora: &Path,
        report: &mut ComponentReport,
    ) -> Result<(), Error> {
        if broken.is_empty() {
            return Ok(());
        }
        report.status = Status::Fail;
        let (mut cut, mut others) = (Vec::<(Shrunk, Shared)>::new(), Vec::new());
        for (invariant, found) in broken {
            let (shrunk, output, other) = self.fewest_rows(invariant, found, None);
            cut.push((shrunk, output));
            others.extend(other.map(|(rows, found)| (invariant, rows, found)));
        }
        // What broke in another way on the way to the fewest rows, and nowhere else, is a finding.
        for (invariant, rows, found) in others {
            let cause = found.cause();
            if !cut.iter().any(|(one, _)| one.found.cause().is_like(&cause)) {
                let (shrunk, output, _) = self.fewest_rows(invariant, found, Some(&rows));
                cut.push((shrunk, output));
            }
        }
        // A smallest part is one of all parts: counted twice, it would say more than it does.
        let mut records = self.parts();
        for (Shrunk { case, .. }, output) in &cut {
            if !records.iter().any(|(known, _)| same_bits(&**known, &**case)) {
                records.insert(0, (case.clone(), output.clone()));
            }
        }
        records.truncate(COMPARED);
        let mut diagnoser =
            Diagnoser::of_records(self.contract, records.clone(), self.options, self.place);
        let mut made = Vec::new();
        for (shrunk, output) in cut {
            let diagnosis = diagnoser.faults(&shrunk);
            let tried = records.iter().filter_map(|(case, output)| {
                match self.verdict(shrunk.invariant, case, output) {
                    Verdict::Holds => Some((case, false)),
                    Verdict::Broken(_) => Some((case, true)),
                    Verdict::Vacuous | Verdict::NeedsOtherCalls => None,
                }
            });
            let outcomes: Vec<(&Shared, bool)> = tried.collect();
            let classes =
                diagnose::classes(self.contract, &shrunk.case, &outcomes, &**self.options);
            let record = Answered::new(&shrunk.case, &output, self.options);
            let mut subject = Subject::new(self.contract, report.name.clone(), Box::new(record));
            subject.options = self.options.clone();
            subject.recorded = Some(report.name.clone());
            let finding =
                finding::make(&mut subject, shrunk, self.place, classes, diagnosis, &mut 0);
            report.calls = report.calls.max(finding.0.shrink_calls);
            made.push(finding);
        }
        let record = Answered::new(self.case, self.output, self.options);
        let mut subject = Subject::new(self.contract, report.name.clone(), Box::new(record));
        subject.recorded = Some(report.name.clone());
        subject.corpora = Some(corpora.to_owned());
        finding::keep_bugs(&mut subject, report, made);
        report.warnings.append(&mut subject.warnings);
        Ok(())
    }

    /// The fewest parts of the batch whose recorded outputs still break an invariant in the same
    /// way; the whole batch where rows have an influence on each other, or an output has no rows.
    /// Only rows `among` some are looked at, where it says so. Gives the rows of the first part
    /// that broke it in another way besides, with what was found.
    fn fewest_rows(
        &self,
        invariant: &'static AnyInvariant,
        mut found: Found,
        among: Option<&[usize]>,
    ) -> (Shrunk, Shared, Option<(Vec<usize>, Found)>) {
        let whole = (self.case.clone(), self.output.clone());
        let (mut tried, mut other) = (0, None);
        let cause = found.cause();
        let mut smallest = None;
        if let Some((cuts, mut parts)) = self.independent() {
            let count = parts.len();
            let is_among = |row: &usize| among.is_none_or(|among| among.contains(row));
            parts.retain(|rows| rows.iter().all(is_among));
            let kept = fewest(parts, &mut |rows| {
                if tried == CANDIDATES {
                    return None;
                }
                tried += 1;
                let Some((case, output)) = cuts.part(&**self.case, &**self.output, rows) else {
                    return Some(false);
                };
                if self.contract.valid(&*case, &**self.options, self.place.dtype).is_err() {
                    return Some(false);
                }
                match self.verdict(invariant, &case, &output) {
                    Verdict::Broken(again) if again.cause().is_like(&cause) => {
                        found = again;
                        Some(true)
                    }
                    Verdict::Broken(another) => {
                        other.get_or_insert_with(|| (rows.to_vec(), another));
                        Some(false)
                    }
                    _ => Some(false),
                }
            });
            let rows = places(&kept);
            if kept.len() < count {
                smallest = cuts.part(&**self.case, &**self.output, &rows);
                if rows.len() <= ROWS_NAMED {
                    found.message.push_str(&format!("\nrows {rows:?} of the batch"));
                }
            }
        }
        let (case, output) = smallest.unwrap_or(whole);
        (Shrunk { invariant, case, found, at_case: 1, tried, other: None }, output, other)
    }

    fn independent(&self) -> Option<(&'static dyn Cuts, Vec<Vec<usize>>)> {
        let cuts = self.contract.cuts()?;
        let parts = cuts.parts(&**self.case, &**self.options)?;
        Some((cuts, parts))
    }

    /// The parts of the batch that are records of their own, or the whole.
    fn parts(&self) -> Vec<Pair> {
        let whole = || vec![(self.case.clone(), self.output.clone())];
        let Some((cuts, parts)) = self.independent() else { return whole() };
        let spread = parts.iter().step_by(parts.len().div_ceil(COMPARED).max(1));
        let of = |rows: &Vec<usize>| cuts.part(&**self.case, &**self.output, rows);
        spread.map(of).collect::<Option<Vec<_>>>().unwrap_or_else(whole)
    }
}
