//! A diagnosis as SARIF 2.1.0: rules are rules, the firing line or the setting is the location.

use std::collections::BTreeMap;

use serde_json::json;
use serde_sarif::sarif;

use crate::render::sarif as whole;
use crate::render::subjects::text::contracts;
use shakedown_lint::report::{Diagnosis, Finding, Severity, Subject};

/// It as JSON text.
pub(crate) fn json(diagnosis: &Diagnosis) -> String {
    let mut rules: Vec<sarif::ReportingDescriptor> = Vec::new();
    let mut results = Vec::new();
    for subject in &diagnosis.subjects {
        for finding in &subject.findings {
            let id = format!("{}/{}", subject.kind.name(), finding.rule);
            let index = rules.iter().position(|rule| rule.id == id).unwrap_or_else(|| {
                rules.push(rule(&id, finding));
                rules.len() - 1
            });
            results.push(result(subject, finding, id, index));
        }
    }
    let warnings = diagnosis.subjects.iter().flat_map(|subject| {
        subject.warnings.iter().map(move |text| format!("{}: {text}", subject.title()))
    });
    let notifications = warnings.map(|text| {
        sarif::Notification::builder().level(json!("warning")).message(whole::message(text)).build()
    });
    let invocation = sarif::Invocation::builder()
        .execution_successful(true)
        .tool_execution_notifications(notifications.collect::<Vec<_>>())
        .build();
    whole::log(&diagnosis.version, rules, invocation, results)
}

fn level(severity: Severity) -> sarif::ResultLevel {
    match severity {
        Severity::Note => sarif::ResultLevel::Note,
        Severity::Warning => sarif::ResultLevel::Warning,
        Severity::Error => sarif::ResultLevel::Error,
    }
}

fn rule(id: &str, finding: &Finding) -> sarif::ReportingDescriptor {
    let text = |text: String| sarif::MultiformatMessageString::builder().text(text).build();
    let mut rule = sarif::ReportingDescriptor::builder().id(id).build();
    rule.short_description = Some(text(finding.rule.replace('-', " ")));
    rule.help = Some(text(format!(
        "Next: {}. Not said: {} Source: {}",
        finding.next.join("; "),
        finding.not_said,
        finding.source
    )));
    let tags = vec![finding.stage.name().to_owned()];
    rule.properties = Some(sarif::PropertyBag::builder().tags(tags).build());
    rule
}

fn result(subject: &Subject, finding: &Finding, rule: String, index: usize) -> sarif::Result {
    let same = format!("{} · {rule}", subject.name);
    let properties = BTreeMap::from([
        ("steps".to_owned(), json!(finding.steps)),
        ("contracts".to_owned(), json!(contracts(finding))),
        ("explainedBy".to_owned(), json!(finding.explained_by)),
    ]);
    let place = whole::place(&subject.name, &subject.title(), finding.location.as_ref());
    sarif::Result::builder()
        .rule_id(rule)
        .rule_index(i64::try_from(index).expect("there are few rules"))
        .level(level(finding.severity))
        .message(whole::message(format!("{}: {}", subject.title(), finding.found)))
        .locations(vec![place])
        .partial_fingerprints(BTreeMap::from([("shakedownRule/v1".to_owned(), same)]))
        .properties(sarif::PropertyBag::builder().additional_properties(properties).build())
        .build()
}
