//! Every historical bug is found by all the invariants that it names, and diagnosed by name there.
//!
//! Others may find it too: which of them do depends on the cases of a run.

use shakedown::engine::subject::Budget;
use shakedown_targets::zoo::{self, Bug};

/// What a check says of a bug and the bug does not, or the other way round.
fn differences(bug: &Bug, seed: u64) -> Option<String> {
    let report = bug.check(&Budget { seed, ..Budget::default() }).unwrap();
    let found: Vec<&str> = report.findings.iter().map(|finding| &*finding.invariant).collect();
    let undiagnosed: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| bug.found_by.contains(&&*finding.invariant))
        .filter(|finding| finding.diagnosis.iter().all(|one| one.fault != bug.fault))
        .map(|finding| {
            let faults: Vec<&str> = finding.diagnosis.iter().map(|one| &*one.fault).collect();
            format!("{}: diagnosed as {faults:?}", finding.invariant)
        })
        .collect();
    let missed = bug.found_by.iter().any(|id| !found.contains(id)) || bug.found_by.is_empty();
    (missed || !undiagnosed.is_empty())
        .then(|| format!("{} with seed {seed}\n  found {found:?}\n  {undiagnosed:?}", bug.source))
}

#[test]
fn every_bug_is_found_by_what_it_names_and_diagnosed() {
    let bugs = zoo::all();
    let differences: Vec<String> =
        bugs.iter().flat_map(|bug| (0..2).filter_map(move |seed| differences(bug, seed))).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
