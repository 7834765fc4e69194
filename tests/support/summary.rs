//! What came of a check, for snapshots.

use std::fmt::Write;

use shakedown::report::{ComponentReport, Finding, InvariantStatus};

/// What came of a component at a place, in words that are the same in every run.
pub(crate) fn of(report: &ComponentReport) -> String {
    let ComponentReport { name, place, .. } = report;
    let held = report.invariants.iter().filter(|one| one.status == InvariantStatus::Pass).count();
    let mut text = format!("{name} · {place}: {held} invariants hold");
    for Finding { invariant, found, case, diagnosis, .. } in &report.findings {
        let found = found.lines().next().unwrap_or("");
        write!(text, "\n  {invariant}: {found}\n    case {case}").unwrap();
        for diagnosis in diagnosis {
            write!(text, "\n    as `{}`", diagnosis.fault).unwrap();
            if !diagnosis.summary.is_empty() {
                write!(text, ": {}", diagnosis.summary).unwrap();
            }
        }
    }
    for warning in &report.warnings {
        write!(text, "\n  warning: {warning}").unwrap();
    }
    text
}
