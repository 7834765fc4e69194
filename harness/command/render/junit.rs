//! The report as JUnit XML: a suite for each component and place, a test case for each invariant.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use shakedown_engine::report::{ComponentReport, InvariantReport, InvariantStatus, Report, Status};

/// The report as XML text.
pub(crate) fn xml(report: &Report) -> String {
    text(report.elapsed_ms, report.components.iter().map(|one| suite(one, report.seed)))
}

/// Suites as XML text.
pub(crate) fn text(elapsed_ms: u64, suites: impl Iterator<Item = TestSuite>) -> String {
    let mut all = quick_junit::Report::new("shakedown");
    all.set_time(Duration::from_millis(elapsed_ms));
    all.add_test_suites(suites);
    let text = all.to_string().expect("the text is in memory and all of it is UTF-8");
    // Jenkins's schema has no such sum at the root, where it would come first; suites have theirs.
    text.replacen(&format!(" skipped=\"{}\"", all.skipped), "", 1)
}

fn suite(component: &ComponentReport, seed: u64) -> TestSuite {
    let title = component.title();
    let mut suite = TestSuite::new(title.as_str());
    suite.set_time(Duration::from_millis(component.elapsed_ms));
    suite.add_property(("contract", component.contract.as_str()));
    suite.add_property(("stage", component.stage.name()));
    suite.add_property(("seed", seed.to_string().as_str()));
    suite.add_property(("cases", component.cases.to_string().as_str()));
    suite.add_property(("extent", component.extent().as_str()));
    suite.add_property(("calls", component.calls.to_string().as_str()));
    let mut add = |name: &str, status: TestCaseStatus| {
        let mut case = TestCase::new(name, status);
        // Servers tell test cases apart by class and name.
        case.set_classname(title.as_str());
        suite.add_test_case(case);
    };
    for invariant in &component.invariants {
        add(&invariant.id, status(component, invariant));
    }
    if component.invariants.is_empty() {
        add("could be prepared", unprepared(component));
    }
    if !component.warnings.is_empty() {
        suite.set_system_out(format!("warning: {}\n", component.warnings.join("\nwarning: ")));
    }
    suite
}

fn status(component: &ComponentReport, invariant: &InvariantReport) -> TestCaseStatus {
    let reason = || invariant.reason.clone().unwrap_or_default();
    match invariant.status {
        InvariantStatus::Pass => TestCaseStatus::success(),
        InvariantStatus::Skipped => skipped("skipped", &reason()),
        InvariantStatus::Known => skipped("known", &format!("known to fail: {}", reason())),
        InvariantStatus::Vacuous => {
            skipped("vacuous", "never exercised (no case met its conditions)")
        }
        InvariantStatus::Fail => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let text = component.failure_text(invariant);
            let message = match component.finding(invariant) {
                Some(finding) => {
                    let found = finding.found.lines().next().unwrap_or_default();
                    format!("{found} ({})", component.which_bug(finding))
                }
                None => reason(),
            };
            status.set_message(message);
            status.set_type(format!("{}/{}", component.contract, invariant.id));
            status.set_description(text);
            status
        }
    }
}

/// A component that came to no invariant: its place is not here, or it could not run.
fn unprepared(component: &ComponentReport) -> TestCaseStatus {
    let reason = component.reason.as_deref().unwrap_or_default();
    if component.status != Status::Error {
        return skipped("skipped", reason);
    }
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_message(reason.lines().next().unwrap_or_default());
    status.set_type("could not run");
    status.set_description(reason);
    status
}

/// A test case that says nothing, for a reason of some kind.
pub(crate) fn skipped(kind: &str, why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_type(kind);
    status.set_message(why);
    status
}
