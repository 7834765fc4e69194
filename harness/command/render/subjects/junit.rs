//! A diagnosis as JUnit XML: a suite for each subject, a test case for each rule.

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::render::junit;
use crate::render::subjects::text::{causes, contracts, place};
use shakedown_lint::report::{Diagnosis, Finding, RuleReport, RuleStatus, Severity, Subject};

/// It as XML text. Findings of `fail_on` and worse are failures.
pub(crate) fn xml(diagnosis: &Diagnosis, fail_on: Severity) -> String {
    let suites = diagnosis.subjects.iter().map(|subject| suite(subject, fail_on));
    junit::text(diagnosis.elapsed_ms, suites)
}

fn suite(subject: &Subject, fail_on: Severity) -> TestSuite {
    let title = subject.title();
    let mut suite = TestSuite::new(title.as_str());
    suite.add_property(("format", subject.format.as_str()));
    suite.add_property(("rows", subject.rows.to_string().as_str()));
    for rule in &subject.rules {
        let mut case = TestCase::new(rule.id.as_str(), status(subject, rule, fail_on));
        case.set_classname(title.as_str());
        suite.add_test_case(case);
    }
    if !subject.warnings.is_empty() {
        suite.set_system_out(format!("warning: {}\n", subject.warnings.join("\nwarning: ")));
    }
    suite
}

fn status(subject: &Subject, rule: &RuleReport, fail_on: Severity) -> TestCaseStatus {
    let reason = rule.reason.as_deref().unwrap_or_default();
    let fails = |one: &&Finding| one.rule == rule.id && one.severity >= fail_on;
    let findings: Vec<&Finding> = subject.findings.iter().filter(fails).collect();
    match (rule.status, &findings[..]) {
        (RuleStatus::Quiet, _) | (RuleStatus::Fires, []) => TestCaseStatus::success(),
        (RuleStatus::Fires, [first, ..]) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(first.found.as_str());
            status.set_type(format!("{}/{}", subject.kind.name(), rule.id));
            status.set_description(findings.iter().map(|one| told(one)).collect::<String>());
            status
        }
        (RuleStatus::Insufficient, _) => junit::skipped("insufficient", reason),
        (RuleStatus::NotApplicable, _) => junit::skipped("not applicable", reason),
        (RuleStatus::Skipped, _) => junit::skipped("skipped", reason),
    }
}

fn told(finding: &Finding) -> String {
    let Finding { severity, found, next, explained_by, .. } = finding;
    let follows =
        explained_by.as_ref().map_or(String::new(), |rule| format!("\nfollows from {rule}"));
    format!(
        "{}{}: {found}{follows}\ncauses:\n{}\nnext:\n{}\ncontracts: {}\n",
        severity.name(),
        place(finding),
        causes(finding),
        next.join("\n"),
        contracts(finding)
    )
}
