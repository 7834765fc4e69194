//! The bugs as SARIF 2.1.0, for code scanning: invariants are rules, functions locations.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use shakedown_contracts as contracts;
use shakedown_engine::report::bugs::Bug;
use shakedown_engine::report::{ComponentReport, Location, Report, Status};

/// Where the schema of SARIF 2.1.0 is.
const SCHEMA: &str = "https://schemastore.azurewebsites.net/schemas/json/sarif-2.1.0.json";

/// The report as JSON text.
pub(crate) fn json(report: &Report) -> String {
    let mut rules = Rules::default();
    let mut results = Vec::new();
    for component in &report.components {
        let bugs = component.bugs().into_iter();
        let bugs = bugs.map(|bug| (&*bug.head.invariant, Some(bug), bug.summary()));
        let others = component.not_as_declared().map(|(id, why)| (id, None, why.to_owned()));
        for (invariant, bug, text) in bugs.chain(others) {
            let id = format!("{}/{invariant}", component.contract);
            let index = rules.index(&id, || rule(&id, &component.contract, invariant));
            results.push(result(component, bug, &text, &id, index));
        }
    }
    log(&report.version, rules, invocation(report), results)
}

/// The rules of a log, each once.
#[derive(Default)]
pub(crate) struct Rules(Vec<Json>);

impl Rules {
    /// Where the rule of this id is in the list; it is put there if it is not.
    pub(crate) fn index(&mut self, id: &str, rule: impl FnOnce() -> Json) -> usize {
        self.0.iter().position(|rule| rule["id"] == id).unwrap_or_else(|| {
            self.0.push(rule());
            self.0.len() - 1
        })
    }
}

/// Results of one run of this version as JSON text.
pub(crate) fn log(version: &str, rules: Rules, invocation: Json, results: Vec<Json>) -> String {
    let log = json!({
        "$schema": SCHEMA,
        "runs": [{
            "invocations": [invocation],
            "results": results,
            "tool": {"driver": {
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "name": "shakedown",
                "rules": rules.0,
                "semanticVersion": version,
                "version": version,
            }},
        }],
        "version": "2.1.0",
    });
    format!("{log:#}\n")
}

/// What the catalogue says of an invariant; nothing where the contract is not one of ours.
fn rule(id: &str, contract: &str, invariant: &str) -> Json {
    let mut rule = json!({"id": id, "defaultConfiguration": {"level": "error"}});
    let known = contracts::find(contract);
    if let Some((contract, invariant)) =
        known.and_then(|contract| Some((contract, contract.invariant(invariant)?)))
    {
        rule["shortDescription"] = message(invariant.doc.claim());
        rule["fullDescription"] = message(invariant.doc.section("Why it matters"));
        rule["help"] = message(invariant.explained().trim());
        let tags = [contract.stage().name(), invariant.pitfall.id()];
        rule["properties"] = json!({"tags": tags});
    }
    rule
}

/// A bug, or an invariant that is not as declared.
fn result(
    component: &ComponentReport,
    bug: Option<Bug<'_>>,
    text: &str,
    rule: &str,
    index: usize,
) -> Json {
    // A bug is the same whichever of the invariants that it breaks tells of it.
    let of = bug.map_or(rule.to_owned(), |bug| format!("{} · {}", component.contract, bug.cause()));
    let mut result = json!({
        "level": "error",
        "locations": [location(component)],
        "message": message(format!("{}: {text}", component.title())),
        "partialFingerprints": {"shakedownBug/v1": format!("{} · {of}", component.name)},
        "properties": properties(component, bug),
        "ruleId": rule,
        "ruleIndex": index,
    });
    if let (Some(_), Some(declared)) = (&component.source, &component.location) {
        let mut declared = located(component, Some(declared));
        declared["message"] = message("declared here");
        result["relatedLocations"] = json!([declared]);
    }
    result
}

fn properties(component: &ComponentReport, bug: Option<Bug<'_>>) -> Json {
    let mut properties = json!({"component": component.name, "place": component.place});
    if let Some(bug) = bug {
        properties["case"] = bug.head.case.clone();
        properties["caseFile"] = json!(bug.head.case_file);
        properties["replay"] = json!(bug.head.replay);
        properties["breaksToo"] = json!(bug.breaks_too());
    }
    properties
}

/// Whether everything ran, and what did not.
fn invocation(report: &Report) -> Json {
    let broken = report.components.iter().filter(|component| component.status == Status::Error);
    let notification = |level: &str, component: &ComponentReport, text: &str| {
        json!({
            "level": level,
            "locations": [location(component)],
            "message": message(format!("{} {text}", component.title())),
        })
    };
    let mut notifications: Vec<Json> = broken
        .map(|component| {
            let reason = component.reason.as_deref().unwrap_or_default();
            notification("error", component, &format!("could not run: {reason}"))
        })
        .collect();
    let successful = notifications.is_empty();
    for component in &report.components {
        let warnings = component.warnings.iter();
        notifications
            .extend(warnings.map(|text| notification("warning", component, &format!("· {text}"))));
    }
    json!({"executionSuccessful": successful, "toolExecutionNotifications": notifications})
}

/// Where the component is written, or else where it is declared.
fn location(component: &ComponentReport) -> Json {
    located(component, component.source.as_ref().or(component.location.as_ref()))
}

fn located(component: &ComponentReport, at: Option<&Location>) -> Json {
    place(&component.name, &component.title(), at)
}

/// The line at which something stands, with the name and the title of what it is about.
pub(crate) fn place(name: &str, title: &str, at: Option<&Location>) -> Json {
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": title, "name": name}]});
    if let Some(at) = at {
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": uri(&at.file)},
            "region": {"startLine": at.line},
        });
    }
    location
}

/// A message of plain text.
pub(crate) fn message(text: impl Into<String>) -> Json {
    json!({"text": text.into()})
}

/// A path as a URI, relative where the path is.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("a/b-c.yaml"), "a/b-c.yaml");
        assert_eq!(uri("my runs/ü:1.yaml"), "my%20runs/%C3%BC%3A1.yaml");
        assert_eq!(uri("/tmp/a.yaml"), "file:///tmp/a.yaml");
    }
}
