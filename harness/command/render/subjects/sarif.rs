//! A diagnosis as SARIF 2.1.0: rules are rules, the firing line or the setting is the location.

use serde_json::{Value as Json, json};
use shakedown_lint::report::{Diagnosis, Finding, Severity, Subject};

use crate::render::sarif::{Rules, log, message, place};
use crate::render::subjects::text::contracts;

/// It as JSON text.
pub(crate) fn json(diagnosis: &Diagnosis) -> String {
    let mut rules = Rules::default();
    let mut results = Vec::new();
    for subject in &diagnosis.subjects {
        for finding in &subject.findings {
            let id = format!("{}/{}", subject.kind.name(), finding.rule);
            let index = rules.index(&id, || rule(&id, finding));
            results.push(result(subject, finding, &id, index));
        }
    }
    let warnings = diagnosis.subjects.iter().flat_map(|subject| {
        subject.warnings.iter().map(move |text| format!("{}: {text}", subject.title()))
    });
    let notifications: Vec<Json> =
        warnings.map(|text| json!({"level": "warning", "message": message(text)})).collect();
    let invocation =
        json!({"executionSuccessful": true, "toolExecutionNotifications": notifications});
    log(&diagnosis.version, rules, invocation, results)
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn rule(id: &str, finding: &Finding) -> Json {
    let help = format!(
        "Next: {}. Not said: {} Source: {}",
        finding.next.join("; "),
        finding.not_said,
        finding.source
    );
    json!({
        "id": id,
        "shortDescription": message(finding.rule.replace('-', " ")),
        "help": message(help),
        "properties": {"tags": [finding.stage.name()]},
    })
}

fn result(subject: &Subject, finding: &Finding, rule: &str, index: usize) -> Json {
    json!({
        "level": level(finding.severity),
        "locations": [place(&subject.name, &subject.title(), finding.location.as_ref())],
        "message": message(format!("{}: {}", subject.title(), finding.found)),
        "partialFingerprints": {"shakedownRule/v1": format!("{} · {rule}", subject.name)},
        "properties": {
            "steps": finding.steps,
            "contracts": contracts(finding),
            "explainedBy": finding.explained_by,
        },
        "ruleId": rule,
        "ruleIndex": index,
    })
}
