//! Checking: every invariant of one component at one place, over one stream of cases.

use std::collections::BTreeMap;
use std::mem::{replace, take};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::diagnose::Diagnoser;
use crate::files::case_file::CaseFile;
use crate::files::corpora;
use crate::files::journal::{self, Journal};
use crate::patience::Patience;
use crate::report::{
    ComponentReport, Cut, Diagnosis, Finding, InvariantReport, InvariantStatus, Status, Times,
    milliseconds, never_reached,
};
use crate::shrink::{Shrunk, shrink};
use crate::subject::{Broken, Budget, Subject};
use crate::{finding, interrupt};
use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::component::{Call, Component as _, Failure, Gradients};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::invariant::AnyInvariant;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::contract::probe::Memo;
use shakedown_core::contract::stream::{self, Stream};
use shakedown_core::laws::NOT_OF_OUTPUTS;
use shakedown_core::value::error::Error;
use shakedown_core::value::location::Location;
use shakedown_core::value::place::{Dtype, Place};
use shakedown_core::value::record::{Shared, same_bits};
use shakedown_core::value::text::number;

/// One invariant while its component is checked.
pub struct Progress {
    /// The invariant.
    pub invariant: &'static AnyInvariant,
    /// How many cases exercised it.
    pub cases: u64,
    broken: Option<Broken>,
    /// Whether it compares calls, as it has done on a case before.
    is_relation: bool,
    /// Whether others judge the case at hand, and this one does not.
    rests: bool,
}

/// How many random cases, the first ones, are judged by every relation between calls, as all cases
/// before them are; and how many of each class.
const FIRST: u64 = 32;
const FIRST_OF_CLASS: u64 = 4;

/// Of the other cases each relation judges one in so many: what the oracle has found right in one
/// call is mostly right in the others too, and they are most of the time.
const ONE_IN: u64 = 4;

/// Which cases a run is over.
#[derive(Clone, Copy)]
enum Over<'a> {
    One(&'a Shared),
    All,
    /// All, under other options than those under which every relation has held.
    AllAgain,
}

impl Progress {
    /// An invariant that has not been checked yet.
    fn new(invariant: &'static AnyInvariant) -> Self {
        Progress { invariant, cases: 0, broken: None, is_relation: false, rests: false }
    }
}

/// Checks a component at a place.
///
/// # Errors
/// The journal or a finding cannot be written, or a regression cannot be read. What the component
/// does wrong is in the report.
pub fn run(
    subject: &mut Subject,
    place: Place,
    budget: &Budget,
    progress: &dyn Fn(u64),
) -> Result<ComponentReport, Error> {
    if interrupt::is_asked() {
        let mut report = blank_report(subject.contract, &subject.name, place);
        report.status = Status::Skipped;
        report.reason = Some("interrupted before it began".to_owned());
        report.cut = Some(Cut::Interrupted);
        return Ok(report);
    }
    let mut report = run_over(subject, place, budget, Over::All, progress)?;
    for blind in subject.contract.blind() {
        if report.reason.is_none() && report.cut.is_none() && blind.hides(&*subject.options) {
            look_behind(subject, blind, place, budget, &mut report, progress)?;
        }
    }
    add_warnings(subject, &mut report);
    Ok(report)
}

/// Adds what is to be said of the run besides, each once.
fn add_warnings(subject: &mut Subject, report: &mut ComponentReport) {
    for warning in take(&mut subject.warnings).into_iter().chain(subject.component.notes()) {
        if !report.warnings.contains(&warning) {
            report.warnings.push(warning);
        }
    }
}

/// Random cases under values of options that show a mistake, at the most.
const CASES_BEHIND: u64 = 64;

/// Checks what held once more under values of options that show a mistake, where the component
/// takes them, and adds what is found to its report.
fn look_behind(
    subject: &mut Subject,
    blind: &Blind,
    place: Place,
    budget: &Budget,
    report: &mut ComponentReport,
    progress: &dyn Fn(u64),
) -> Result<(), Error> {
    // Half formats would only say once more how they round.
    if !matches!(place.dtype, Dtype::F64 | Dtype::F32) {
        return Ok(());
    }
    if !blind.is_taken(|option| subject.component.reads(option)) {
        report.warnings.extend(blind.warning());
        return Ok(());
    }
    let held = report.invariants.iter().filter(|one| one.status == InvariantStatus::Pass);
    let held: Vec<String> = held.map(|one| one.id.clone()).collect();
    let Some(options) = blind.shown(&subject.options).filter(|_| !held.is_empty()) else {
        return Ok(());
    };
    let is_long = subject.contract.stage().is_long();
    let most = if is_long { budget.cases.div_ceil(4) } else { CASES_BEHIND };
    let budget = Budget { cases: budget.cases.min(most), ..budget.clone() };
    let before = report.cases;
    let count = |cases| progress(before + cases);
    let (declared, asked) =
        (replace(&mut subject.options, options), replace(&mut subject.only, held));
    let more = run_over(subject, place, &budget, Over::AllAgain, &count);
    (subject.options, subject.only) = (declared, asked);
    report.add(more?, &blind.under());
    Ok(())
}

/// Checks a component at a place on one case and no other.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    subject: &mut Subject,
    place: Place,
    case: &Shared,
) -> Result<ComponentReport, Error> {
    let mut report = run_over(subject, place, &Budget::default(), Over::One(case), &|_| ())?;
    add_warnings(subject, &mut report);
    Ok(report)
}

/// A report in which nothing was checked yet.
pub fn blank_report(contract: &dyn AnyContract, name: &str, place: Place) -> ComponentReport {
    ComponentReport {
        name: name.to_owned(),
        contract: contract.id().to_owned(),
        stage: contract.stage(),
        place,
        location: None,
        source: None,
        status: Status::Pass,
        reason: None,
        cases: 0,
        planned: 0,
        unanswered: 0,
        cut: None,
        calls: 0,
        elapsed_ms: 0,
        times: Times::default(),
        invariants: Vec::new(),
        findings: Vec::new(),
        classes: BTreeMap::new(),
        warnings: Vec::new(),
    }
}

/// How much longer than the time a case that has begun may take.
const GRACE: Duration = Duration::from_secs(1);

/// Checks a component on one case, or on the stream of all.
fn run_over(
    subject: &mut Subject,
    place: Place,
    budget: &Budget,
    over: Over<'_>,
    progress: &dyn Fn(u64),
) -> Result<ComponentReport, Error> {
    let started = Instant::now();
    let (mut report, mut checked) = begin(subject, place, false);
    report.times.load_ms = milliseconds(started);
    if report.reason.is_some() {
        report.elapsed_ms = milliseconds(started);
        return Ok(report);
    }
    let begun = Instant::now();
    let (contract, options) = (subject.contract, Arc::clone(&subject.options));
    let (kept, only, stream) = match over {
        Over::One(case) => (1, Some(case), None),
        Over::All | Over::AllAgain => {
            let first = first_cases(subject, place)?;
            let stream = stream::cases(contract, first, budget.seed, &options, place.dtype);
            (stream.kept(), None, Some(stream))
        }
    };
    let fixed = stream.as_ref().map_or(1, Stream::fixed);
    report.planned = fixed + if only.is_some() { 0 } else { budget.cases };
    let has_oracle = checked.iter().any(|progress| progress.invariant.id == "oracle");
    let all_related = if let Over::AllAgain = over { kept } else { fixed + FIRST };
    let cases = only.cloned().into_iter().chain(stream.into_iter().flatten().map(|(_, case)| case));
    open_journal(subject, place, &mut report);
    let classes = contract.classes();
    let mut counts = vec![0; classes.len()];
    let end = budget.time.map(|limit| started + limit);
    let mut patience = Patience::until(end);
    let (mut failed_with, mut last) = (None, None);
    for case in cases.take(usize::try_from(report.planned).unwrap_or(usize::MAX)) {
        if checked.iter().all(|progress| progress.broken.is_some()) {
            break;
        }
        // What was kept is always called again, whatever the time.
        let is_kept = report.cases < kept.max(1);
        report.cut = patience.why().filter(|why| !is_kept || *why != Cut::Time);
        if report.cut.is_some() {
            break;
        }
        let mut memo = Memo::default();
        if subject.is_beyond_f64(&case, place, &mut memo) {
            report.planned -= 1;
            continue;
        }
        let bounded = end.filter(|_| report.cases >= kept);
        subject.until = bounded.map(|end| end.max(Instant::now()) + GRACE);
        report.cases += 1;
        last = Some(Shared::clone(&case));
        progress(report.cases);
        let mut is_new = report.cases <= all_related;
        for (class, count) in classes.iter().zip(&mut counts) {
            if class.contains(&*case, &*options) {
                *count += 1;
                is_new |= *count <= FIRST_OF_CLASS;
            }
        }
        for (turn, progress) in (report.cases..).zip(&mut checked) {
            let is_due = is_new || !has_oracle || turn.is_multiple_of(ONE_IN);
            progress.rests = progress.is_relation && !is_due;
        }
        let answer =
            check_case(subject, &mut checked, &case, memo, place, &mut patience, &mut report);
        if let Some(failure) = answer.err() {
            report.unanswered += 1;
            failed_with.get_or_insert(failure);
        }
        if let Err(error) = subject.component.check_journal() {
            report.warnings.push(unjournaled(&error));
            subject.component.journal = None;
        }
    }
    subject.until = None;
    if let Some(cut) = report.cut {
        let ComponentReport { cases, planned, .. } = report;
        report.warnings.push(match cut {
            Cut::GaveUp => format!("stopped after {cases} cases: the component {patience}"),
            Cut::Time => format!("checked on {cases} of {planned} cases: the time was over"),
            Cut::Interrupted => format!("checked on {cases} of {planned} cases: interrupted"),
        });
    }
    let all_given = only.is_none() && report.cases == report.planned;
    for (class, count) in classes.iter().zip(counts) {
        if count == 0 && class.is_generated(&*options, place.dtype) && all_given {
            report.warnings.push(never_reached(class.id));
        }
        report.classes.insert(class.id.to_owned(), count);
    }
    report.times.cases_ms = milliseconds(begun);
    conclude(subject, checked, place, budget, &mut report);
    subject.component.journal = None;
    if report.status == Status::Pass && report.cases > 0 && report.unanswered == report.cases {
        report.status = Status::Error;
        let why = failed_with.map_or_else(String::new, |failure| format!(": {failure}"));
        report.reason = Some(format!("no call gave an output on {}{why}", report.extent()));
    } else if report.status == Status::Pass && !report.invariants.iter().any(|one| one.cases > 0) {
        let (status, mut reason) = unjudged(&report.invariants);
        if let (Status::Error, Some(Cut::Time)) = (status, report.cut) {
            let ComponentReport { cases, planned, .. } = report;
            reason = format!("nothing was checked: the time was over in case {cases} of {planned}");
        }
        // The calls of an invariant may all have failed: one more shows how.
        if let (Status::Error, Some(case), None) = (status, last, report.cut) {
            let call = Call { case: &case, options: &options, place, gradient: false };
            report.calls += 1;
            if let Err(failure) = subject.component.call(&call) {
                reason = format!("{reason}; a call {failure}");
            }
        }
        (report.status, report.reason) = (status, Some(reason));
    }
    report.elapsed_ms = milliseconds(started);
    Ok(report)
}

/// Prepares a component for a place: an empty report and the invariants to check, or a report that
/// says why there is nothing to check. With `any_options` each case brings its own, so that an
/// invariant that does not apply under those in force is one to check.
pub fn begin(
    subject: &mut Subject,
    place: Place,
    any_options: bool,
) -> (ComponentReport, Vec<Progress>) {
    let mut report = blank_report(subject.contract, &subject.name, place);
    if subject.tolerance != 1.0 {
        let factor = number(subject.tolerance);
        report.warnings.push(format!("every tolerance is multiplied by {factor}"));
    }
    match subject.component.prepare(place) {
        Ok(None) => {
            report.warnings.extend(subject.component.notes());
            let source = subject.component.source();
            report.source = source.map(|(file, line)| Location::of_source(&file, line));
            let checked = select(subject, place, any_options, &mut report);
            return (report, checked);
        }
        Ok(Some(why)) => {
            report.status = Status::Skipped;
            report.reason = Some(why);
        }
        Err(error) => {
            report.status = Status::Error;
            report.reason = Some(error.to_string());
        }
    }
    (report, Vec::new())
}

/// What a check is that judged nothing, and why: skipped where no invariant was to be checked, an
/// error where no case met the conditions of those that were.
pub fn unjudged(invariants: &[InvariantReport]) -> (Status, String) {
    let vacuous = invariants.iter().filter(|one| one.status == InvariantStatus::Vacuous);
    let mut vacuous: Vec<String> = vacuous.map(|one| format!("`{}`", one.id)).collect();
    let reason = |one: &InvariantReport| Some(format!("{} {}", one.id, one.reason.as_deref()?));
    let mut reasons: Vec<String> = invariants.iter().filter_map(reason).collect();
    let is_error = !vacuous.is_empty();
    let (all, between) = if is_error { (&mut vacuous, ", ") } else { (&mut reasons, "; ") };
    if let [_, _, _, more @ ..] = &all[..] {
        let others = format!("and {} others", more.len());
        all.splice(3.., (!more.is_empty()).then_some(others));
    }
    let all = all.join(between);
    match is_error {
        true => {
            (Status::Error, format!("nothing was checked: no case meets the conditions of {all}"))
        }
        false => (Status::Skipped, format!("nothing was checked: {all}")),
    }
}

/// The invariants to check; those that are not are reported as skipped, with the reason.
fn select(
    subject: &Subject,
    place: Place,
    any_options: bool,
    report: &mut ComponentReport,
) -> Vec<Progress> {
    let mut checked = Vec::new();
    for invariant in subject.contract.invariants() {
        let skipped =
            if !subject.only.is_empty() && !subject.only.iter().any(|id| id == invariant.id) {
                continue;
            } else if let Some(why) = subject.skip.get(invariant.id) {
                Some(why.clone())
            } else if !any_options && !invariant.applies(&*subject.options, place) {
                Some("does not apply under these options at this place".to_owned())
            } else if invariant.needs_gradient {
                match subject.component.gradients(place) {
                    Gradients::None(why) => Some(why),
                    _ => None,
                }
            } else {
                None
            };
        let status = InvariantStatus::Skipped;
        match skipped {
            None => checked.push(Progress::new(invariant)),
            reason => report.invariants.push(InvariantReport {
                id: invariant.id.to_owned(),
                status,
                cases: 0,
                reason,
            }),
        }
    }
    checked
}

/// What was in flight when the last run was killed, then what is handed in, then the regressions.
pub fn first_cases(subject: &Subject, place: Place) -> Result<Vec<Shared>, Error> {
    let mut first = Vec::new();
    if let Some(state) = subject.state() {
        let in_flight = journal::left_behind(subject.contract, state, &subject.name, place);
        first.extend(in_flight.into_iter().map(|file| file.case));
    }
    first.extend(subject.first.iter().cloned());
    let regressions = corpora::regressions(subject.contract, subject.corpora.as_deref())?;
    first.extend(regressions.into_iter().map(|(_, file)| file.case));
    Ok(first)
}

/// Opens the journal of a component, where it has one.
fn open_journal(subject: &mut Subject, place: Place, report: &mut ComponentReport) {
    let Some(state) = subject.state() else { return };
    let Subject { contract, name, options, .. } = &*subject;
    match Journal::open(*contract, state, name, place, &**options) {
        Ok(journal) => subject.component.journal = Some(journal),
        Err(error) => report.warnings.push(unjournaled(&error)),
    }
}

fn unjournaled(error: &Error) -> String {
    format!("a case in flight is lost if this process is killed: {error}")
}

/// Checks every invariant that is not broken yet; the failure of the component's call for the case
/// itself, where it failed.
fn check_case(
    subject: &mut Subject,
    checked: &mut [Progress],
    case: &Shared,
    mut memo: Memo,
    place: Place,
    patience: &mut Patience,
    report: &mut ComponentReport,
) -> Result<(), Failure> {
    for index in 0..checked.len() {
        // The time cuts a case that has begun short in its calls, after some grace.
        let is_over = patience.why().is_some_and(|why| why != Cut::Time);
        if checked[index].broken.is_some() || checked[index].rests || is_over {
            continue;
        }
        let invariant = checked[index].invariant;
        let (calls_before, relations_before) = (report.calls, memo.relations);
        let (outcome, failed) =
            subject.try_with(invariant, case, place, &mut memo, &mut report.calls);
        checked[index].is_relation |= memo.relations > relations_before;
        // A failure that is only remembered costs nothing.
        if let (Some((_, failure)), true) = (&failed, report.calls > calls_before) {
            patience.spend(failure);
        }
        let at_case = report.cases;
        match outcome {
            Ok(()) => checked[index].cases += 1,
            Err(Stop::Vacuous) => {}
            Err(Stop::Broken(found)) => {
                checked[index].cases += 1;
                checked[index].broken = Some(Broken { case: Shared::clone(case), found, at_case });
            }
            Err(Stop::Failed) => {
                let (case, failure) = failed.expect("a failed probe keeps its case");
                let law = failure.law();
                let law = checked.iter_mut().find(|progress| progress.invariant.id == law);
                if let Some(progress) = law.filter(|progress| progress.broken.is_none()) {
                    progress.cases += 1;
                    progress.broken = Some(Broken { case, found: failure.found(), at_case });
                }
            }
        }
    }
    memo.output.map_or(Ok(()), |output| output.map(drop))
}

/// Shrinks and diagnoses what broke, and writes it down.
fn conclude(
    subject: &mut Subject,
    checked: Vec<Progress>,
    place: Place,
    budget: &Budget,
    report: &mut ComponentReport,
) {
    let mut findings = Vec::new();
    let mut unchecked = Vec::new();
    for Progress { invariant, cases, broken, .. } in checked {
        let known = subject.known.get(invariant.id).cloned();
        let (status, reason) = match (&broken, known) {
            (Some(_), Some(why)) => (InvariantStatus::Known, Some(why)),
            (Some(_), None) => (InvariantStatus::Fail, None),
            (None, _) if cases == 0 => {
                unchecked.push(invariant.id);
                (InvariantStatus::Vacuous, None)
            }
            (None, Some(why)) => {
                let reason = format!("holds, but is declared to fail (known: {why})");
                report.warnings.push(format!("{} {reason}", invariant.id));
                report.status = Status::Fail;
                (InvariantStatus::Fail, Some(reason))
            }
            (None, None) => (InvariantStatus::Pass, None),
        };
        let id = invariant.id.to_owned();
        report.invariants.push(InvariantReport { id, status, cases, reason });
        if let (Some(broken), InvariantStatus::Fail) = (broken, status) {
            findings.push((invariant, broken));
        }
    }
    // One case says little of most; that is no news.
    if !unchecked.is_empty() && report.planned > 1 {
        let ids = unchecked.join(", ");
        let in_time = if report.cut == Some(Cut::Time) { " in time" } else { "" };
        let why = format!("no case met their conditions{in_time}");
        report.warnings.push(format!("never exercised ({why}): {ids}"));
    }
    let order: Vec<&str> =
        subject.contract.invariants().iter().map(|invariant| invariant.id).collect();
    report.invariants.sort_by_key(|invariant| order.iter().position(|id| *id == invariant.id));
    if findings.is_empty() {
        return;
    }
    report.status = Status::Fail;
    // As long again as the cases were given, in halves: one for shrinking, one for diagnosing.
    let half = budget.time.map(|limit| limit / 2);
    subject.until = half.map(|half| Instant::now() + half);
    let begun = Instant::now();
    let first: Vec<_> = findings.iter().map(|(_, it)| (it.at_case, it.case.clone())).collect();
    let mut shrunk: Vec<Shrunk> = Vec::new();
    for (invariant, broken) in findings {
        shrunk.push(shrink(subject, invariant, broken, place, &mut report.calls));
    }
    // What broke in another way on the way to a smallest case, and nowhere else, is a finding too.
    for index in 0..shrunk.len() {
        let Some(other) = shrunk[index].other.take() else { continue };
        let cause = other.found.cause();
        if !shrunk.iter().any(|one| one.found.cause().is_like(&cause)) {
            let invariant = shrunk[index].invariant;
            shrunk.push(shrink(subject, invariant, other, place, &mut report.calls));
        }
    }
    report.times.shrinking_ms = milliseconds(begun);
    let is_minimal = !is_cut_short(subject);
    let begun = Instant::now();
    subject.until = half.map(|half| begun + half);
    let mut diagnoser = Diagnoser::new(subject, &shrunk, place, budget, &mut report.calls);
    let mut patience = subject.patience();
    let mut told: Vec<Vec<Diagnosis>> = shrunk.iter().map(|one| diagnoser.faults(one)).collect();
    // The smallest case of an invariant is of one bug; another one may break it elsewhere.
    for besides in diagnoser.overlooked(&told) {
        // It was met among all of them.
        let (cases, calls) = (report.cases, &mut report.calls);
        let found = diagnoser.shrink_besides(subject, besides, place, cases, calls);
        let Some((besides, diagnosis)) = found else { continue };
        let same =
            |one: &Shrunk| one.invariant.id == besides.invariant.id && *one.case == *besides.case;
        match shrunk.iter().position(same) {
            // That case is told already, and may have had no name.
            Some(at) if told[at].is_empty() => told[at] = diagnosis,
            Some(_) => {}
            None => {
                shrunk.push(besides);
                told.push(diagnosis);
            }
        }
    }
    let (mut made, mut where_wrong) = (Vec::new(), None);
    for (shrunk, diagnosis) in shrunk.into_iter().zip(told) {
        let (classes, where_broken) =
            diagnoser.classes(subject, &shrunk, &mut patience, &mut report.calls);
        let calls = &mut report.calls;
        let again = first.iter().find(|(at_case, _)| *at_case == shrunk.at_case);
        let again = again.and_then(|(_, case)| kept_before(subject, case, place));
        let (mut finding, file) = finding::make(subject, shrunk, place, classes, diagnosis, calls);
        finding.again = again;
        if finding.diagnosis.is_empty() && !NOT_OF_OUTPUTS.contains(&&*finding.invariant) {
            let where_wrong = where_wrong.get_or_insert_with(|| diagnoser.where_wrong());
            finding.region = where_wrong.clone().or(where_broken);
        }
        made.push((finding, file));
    }
    let held = report.invariants.iter().filter(|one| one.status == InvariantStatus::Pass);
    let held: Vec<&str> = held.map(|one| &*one.id).collect();
    add_signature(&diagnoser, &mut made, &held);
    finding::keep_bugs(subject, report, made);
    report.times.diagnosis_ms = milliseconds(begun);
    if !is_minimal || is_cut_short(subject) {
        let warning =
            "the time was over: cases may not be minimal, and diagnoses may be incomplete";
        subject.warnings.push(warning.to_owned());
    }
}

/// Whether what follows a finding ends before it is done.
fn is_cut_short(subject: &Subject) -> bool {
    matches!(subject.patience().why(), Some(Cut::Time | Cut::Interrupted))
}

/// The file of a case that somebody kept, with the reason why.
fn kept_before(subject: &Subject, case: &Shared, place: Place) -> Option<String> {
    let kept = corpora::kept(subject.contract, subject.corpora.as_deref()?).ok()?;
    let is_it = |file: &CaseFile| same_bits(&*file.case.rounded(place.dtype), &**case);
    let (name, file) = kept.into_iter().find(|(_, file)| is_it(file))?;
    let why = file.why.map_or_else(String::new, |why| format!("; it was kept for: {why}"));
    let link = file.link.map_or_else(String::new, |link| format!(", {link}"));
    Some(format!("the kept case {name}.yaml fails again{why}{link}"))
}

/// Adds to the findings without a name what the laws that they break imply together.
fn add_signature(diagnoser: &Diagnoser, made: &mut [(Finding, CaseFile)], held: &[&str]) {
    let is_unnamed = |finding: &Finding| finding.diagnosis.is_empty();
    let named = made.iter().any(|(finding, _)| !is_unnamed(finding));
    let broken: Vec<&str> = made.iter().map(|(finding, _)| &*finding.invariant).collect();
    // Beside a bug with a name nobody knows what each of them breaks.
    let signature = if named { None } else { diagnoser.signature(&broken, held) };
    let Some(signature) = signature else { return };
    for (finding, _) in made {
        if !NOT_OF_OUTPUTS.contains(&&*finding.invariant) {
            let before = finding.region.take().map(|region| region + "\n");
            finding.region = Some(before.unwrap_or_default() + &signature);
        }
    }
}

#[cfg(test)]
mod tests;
