//! Findings: from the first case that broke an invariant to the smallest one, on disk.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::files::case_file::CaseFile;
use crate::files::corpora::found_folder;
use crate::report::json::{json, json_float, nested_json};
use crate::report::{Classes, ComponentReport, Diagnosis, Finding, Strength};
use crate::shrink::Shrunk;
use crate::subject::Subject;
use shakedown_core::contract::component::Component as _;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::invariant::AnyInvariant;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::contract::probe::gradient_of_first;
use shakedown_core::contract::stream;
use shakedown_core::numeric::tolerance::{Number, Wanted};
use shakedown_core::value::place::{Dtype, Place};
use shakedown_core::value::record::{AnyRecord, Shared};
use shakedown_core::value::text::{for_shell, one_line, shortened};
use shakedown_core::value::yaml;

/// Makes the entry of a finding in the report, and the file of its case.
pub fn make(
    subject: &mut Subject,
    shrunk: Shrunk,
    place: Place,
    classes: Classes,
    diagnosis: Vec<Diagnosis>,
    calls: &mut u64,
) -> (Finding, CaseFile) {
    let Shrunk { invariant, case, mut found, at_case, tried, .. } = shrunk;
    if let Some(option) = excuse(subject, invariant, &case, place, calls) {
        found.message.push_str(&format!("\nthe option `{option}` would excuse it"));
    }
    let file = CaseFile {
        contract: subject.contract,
        invariant: Some(invariant.id.to_owned()),
        also: Vec::new(),
        component: subject.recorded.is_none().then(|| subject.name.clone()),
        recorded: subject.recorded.clone(),
        place: Some(place),
        why: Some(found.message.lines().next().unwrap_or("").to_owned()),
        link: None,
        diagnosis: diagnosis.iter().map(|diagnosis| diagnosis.fault.clone()).collect(),
        behaves: subject.behaves.clone(),
        stateful: false,
        reported: false,
        options: Arc::clone(&subject.options),
        case,
    };
    *calls += 1;
    subject.component.shows(invariant.id);
    let returned = subject.call(&file.case, place, invariant.needs_gradient);
    let output = returned.ok().map(|returned| returned.output);
    let given = output.as_ref().map(|output| format!("  →  {}", one_line(&**output)));
    let shown = one_line(&*file.case) + &given.unwrap_or_default();
    let finding = Finding {
        invariant: invariant.id.to_owned(),
        bug: 0,
        pitfall: invariant.pitfall,
        claim: invariant.doc.claim(),
        found: found.message,
        cases_to_failure: at_case,
        shrink_calls: tried,
        case: json(&*file.case),
        output: output.as_ref().map(|output| json(&**output)),
        expected: expected_json(
            subject.contract,
            &*file.case,
            &*subject.options,
            place.dtype,
            output.as_deref(),
        ),
        shown: shortened(shown),
        again: None,
        case_file: None,
        replay: subject.again(),
        classes,
        diagnosis,
        region: None,
    };
    (finding, file)
}

/// What stands after "wrong" in a finding that needs earlier calls.
const AFTER_OTHER_CALLS: &str = "only after other calls: as the first call of a fresh process the \
                                 smallest case passes, so something is kept from call to call";

/// How often the smallest case must fail here, and pass in fresh processes: what is random does
/// both by chance, once in 4096 bugs at most.
const REPEATS: usize = 6;

/// Notes where a bug shows only after other calls: its smallest case fails here, and passes as the
/// first of a fresh process. What has an exact name does not depend on them.
pub fn note_state(
    subject: &mut Subject,
    findings: &mut [&mut Finding],
    file: &mut CaseFile,
    place: Place,
    calls: &mut u64,
) {
    let mut names = findings.iter().flat_map(|finding| &finding.diagnosis);
    let is_exact = names.any(|one| one.strength == Strength::Exactly);
    let invariant = file.invariant.as_deref().and_then(|id| file.contract.invariant(id));
    let Some(invariant) = invariant else { return };
    let case = Shared::clone(&file.case);
    let mut patience = subject.patience();
    let mut holds = |subject: &mut Subject| {
        if patience.is_over() {
            return None;
        }
        let (outcome, failed) = subject.try_case(invariant, &case, place, calls);
        failed.iter().for_each(|(_, failure)| patience.spend(failure));
        Some(outcome.is_ok())
    };
    file.stateful = !is_exact
        && (0..REPEATS).all(|_| holds(subject) == Some(false))
        && (0..REPEATS).all(|_| subject.component.begin_anew() && holds(subject) == Some(true));
    for finding in findings.iter_mut().filter(|_| file.stateful) {
        let told = finding.region.take().map(|region| format!("\n{region}"));
        finding.region = Some(AFTER_OTHER_CALLS.to_owned() + &told.unwrap_or_default());
    }
}

/// Numbers the bugs of a report and keeps one case of each: the findings come with the files of
/// their cases.
pub(crate) fn keep_bugs(
    subject: &mut Subject,
    report: &mut ComponentReport,
    made: Vec<(Finding, CaseFile)>,
) {
    let (findings, files): (Vec<Finding>, Vec<CaseFile>) = made.into_iter().unzip();
    report.findings = findings;
    let order = report.number_bugs();
    let bugs: Vec<u64> = report.findings.iter().map(|finding| finding.bug).collect();
    for bug in bugs.chunk_by(|a, b| a == b) {
        let of_bug = |finding: &&mut Finding| finding.bug == bug[0];
        let at = report.findings.iter().position(|finding| finding.bug == bug[0]);
        let mut file = files[order[at.expect("it is one of them")]].clone();
        let mut all: Vec<&mut Finding> = report.findings.iter_mut().filter(of_bug).collect();
        let also = all.iter().skip(1).map(|finding| finding.invariant.clone());
        file.also.extend(also.filter(|id| Some(id) != file.invariant.as_ref()));
        note_state(subject, &mut all, &mut file, report.place, &mut report.calls);
        let kept = keep(subject, &file);
        for finding in all {
            (finding.case_file, finding.replay) = kept.clone();
        }
    }
}

/// Writes the case of a finding into `found`: where it is, and how to call the component on it
/// again. One that cannot be written is among the subject's warnings.
pub fn keep(subject: &mut Subject, file: &CaseFile) -> (Option<String>, String) {
    let path = match subject.state() {
        None => None,
        // A batch that could not be made smaller: what cannot be read again is not kept.
        Some(_) if file.text().len() as u64 > yaml::LARGEST_FILE_BYTES => None,
        Some(state) => match file.write_in(&found_folder(state, subject.contract.id())) {
            Ok(path) => Some(path.display().to_string()),
            Err(error) => {
                subject.warnings.push(format!("the case is not kept: {error}"));
                None
            }
        },
    };
    let replay = match (&path, &subject.manifest) {
        (Some(path), _) if subject.replay.is_some() => {
            subject.replay.iter().map(|how| how.replace("{file}", &for_shell(path))).collect()
        }
        (Some(path), _) if subject.recorded.is_some() => {
            format!("shakedown replay {path} --manifest …")
        }
        (Some(path), Some(manifest)) => {
            let [path, manifest] = [path, &manifest.display().to_string()].map(|p| for_shell(p));
            format!("shakedown replay {path} --manifest {manifest}")
        }
        _ => subject.again(),
    };
    (path, replay)
}

/// Other cases on which an invariant is checked before an option is said to excuse its finding.
const CASES_ELSEWHERE: usize = 256;

/// The option under which no trainer meets such a case, where the invariant holds on others:
/// `singleton: avoid`.
fn excuse(
    subject: &mut Subject,
    invariant: &AnyInvariant,
    case: &Shared,
    place: Place,
    calls: &mut u64,
) -> Option<String> {
    let contract = subject.contract;
    let is_recorded = subject.recorded.is_some();
    for doc in contract.option_docs() {
        if !doc.meaning.contains("`avoid`") {
            continue;
        }
        let Ok(options) = subject.options.with(doc.name, "avoid") else { continue };
        let valid = |case: &Shared, options: &dyn AnyOptions| {
            contract.valid(&**case, options, place.dtype).is_ok()
        };
        if options.check().is_err() || valid(case, &*options) {
            continue;
        }
        let declared = Arc::clone(&subject.options);
        let others = stream::cases(contract, Vec::new(), 0, &options, place.dtype)
            .map(|(_, other)| other)
            .filter(|other| valid(other, &*options) && valid(other, &*declared));
        let mut patience = subject.patience();
        let mut breaks = |other: Shared| {
            let (outcome, failed) = subject.try_case(invariant, &other, place, calls);
            failed.iter().for_each(|(_, failure)| patience.spend(failure));
            matches!(outcome, Err(Stop::Broken(_))) || patience.is_over()
        };
        // A record answers no other call.
        if is_recorded || !others.take(CASES_ELSEWHERE).any(&mut breaks) {
            return Some(format!("{}: avoid", doc.name));
        }
    }
    None
}

/// What the definition gives for a case, by field.
fn expected_json(
    contract: &dyn AnyContract,
    case: &dyn AnyRecord,
    options: &dyn AnyOptions,
    dtype: Dtype,
    output: Option<&dyn AnyRecord>,
) -> Json {
    let mut fields = serde_json::Map::new();
    if contract.refuses(case, options) {
        return fields.into();
    }
    let settled = output.and_then(|output| contract.settled(case, options, output));
    let case = settled.as_deref().unwrap_or(case);
    let open = || Json::Object(serde_json::Map::new());
    let number = |number: &Number| match number.scale.is_infinite() {
        true => open(),
        false => json_float(number.value),
    };
    let mut numbers = contract.oracle(case, options, dtype);
    if contract.wants_gradient(options) {
        numbers.extend(match output {
            Some(output) => gradient_of_first(contract, case, options, dtype, output),
            None => contract.oracle_gradient(case, options, dtype),
        });
    }
    for expected in numbers {
        fields.insert(expected.field.to_owned(), nested_json(expected.numbers.view(), &number));
    }
    for expected in contract.oracle_texts(case, options) {
        let text = |wanted: &Wanted| match wanted {
            Wanted::Open => open(),
            wanted => wanted.shown().into(),
        };
        fields.insert(expected.field.to_owned(), expected.texts.iter().map(text).collect());
    }
    fields.into()
}
