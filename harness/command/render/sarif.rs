//! The bugs as SARIF 2.1.0, for code scanning: invariants are rules, functions locations.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;
use serde_sarif::sarif;

use shakedown_contracts as contracts;
use shakedown_engine::report::bugs::Bug;
use shakedown_engine::report::{ComponentReport, Location, Report, Status};

/// The report as JSON text.
pub(crate) fn json(report: &Report) -> String {
    let mut rules: Vec<sarif::ReportingDescriptor> = Vec::new();
    let mut results = Vec::new();
    for component in &report.components {
        let bugs = component.bugs().into_iter();
        let bugs = bugs.map(|bug| (&*bug.head.invariant, Some(bug), bug.summary()));
        let others = component.not_as_declared().map(|(id, why)| (id, None, why.to_owned()));
        for (invariant, bug, text) in bugs.chain(others) {
            let id = format!("{}/{invariant}", component.contract);
            let index = rules.iter().position(|rule| rule.id == id).unwrap_or_else(|| {
                rules.push(rule(&id, &component.contract, invariant));
                rules.len() - 1
            });
            results.push(result(component, bug, &text, id, index));
        }
    }
    log(&report.version, rules, invocation(report), results)
}

/// Results of one run of this version as JSON text.
pub(crate) fn log(
    version: &str,
    rules: Vec<sarif::ReportingDescriptor>,
    invocation: sarif::Invocation,
    results: Vec<sarif::Result>,
) -> String {
    let driver = sarif::ToolComponent::builder()
        .name("shakedown")
        .version(version.to_owned())
        .semantic_version(version.to_owned())
        .information_uri(env!("CARGO_PKG_REPOSITORY"))
        .rules(rules)
        .build();
    let run = sarif::Run::builder()
        .tool(sarif::Tool::builder().driver(driver).build())
        .invocations(vec![invocation])
        .results(results)
        .build();
    let log = sarif::Sarif::builder()
        .schema(sarif::SCHEMA_URL)
        .version(json!("2.1.0"))
        .runs(vec![run])
        .build();
    let mut text = serde_json::to_string_pretty(&log).expect("a log can be written");
    text.push('\n');
    text
}

/// What the catalogue says of an invariant; nothing where the contract is not one of ours.
fn rule(id: &str, contract: &str, invariant: &str) -> sarif::ReportingDescriptor {
    let mut rule = sarif::ReportingDescriptor::builder().id(id).build();
    rule.default_configuration =
        Some(sarif::ReportingConfiguration::builder().level(json!("error")).build());
    let text = |text: String| sarif::MultiformatMessageString::builder().text(text).build();
    let known = contracts::find(contract);
    if let Some((contract, invariant)) =
        known.and_then(|contract| Some((contract, contract.invariant(invariant)?)))
    {
        let tags = vec![contract.stage().name().to_owned(), invariant.pitfall.id().to_owned()];
        rule.short_description = Some(text(invariant.doc.claim()));
        rule.full_description = Some(text(invariant.doc.section("Why it matters")));
        rule.help = Some(text(invariant.explained().trim().to_owned()));
        rule.properties = Some(sarif::PropertyBag::builder().tags(tags).build());
    }
    rule
}

/// A bug, or an invariant that is not as declared.
fn result(
    component: &ComponentReport,
    bug: Option<Bug<'_>>,
    text: &str,
    rule: String,
    index: usize,
) -> sarif::Result {
    let text = format!("{}: {text}", component.title());
    // A bug is the same whichever of the invariants that it breaks tells of it.
    let of = bug.map_or(rule.clone(), |bug| format!("{} · {}", component.contract, bug.cause()));
    let same = format!("{} · {of}", component.name);
    let mut result = sarif::Result::builder()
        .rule_id(rule)
        .rule_index(i64::try_from(index).expect("there are few rules"))
        .level(sarif::ResultLevel::Error)
        .message(message(text))
        .locations(vec![location(component)])
        .partial_fingerprints(BTreeMap::from([("shakedownBug/v1".to_owned(), same)]))
        .properties(properties(component, bug))
        .build();
    if component.source.is_some() {
        let mut declared = located(component, component.location.as_ref());
        declared.message = Some(message("declared here".to_owned()));
        result.related_locations = component.location.as_ref().map(|_| vec![declared]);
    }
    result
}

fn properties(component: &ComponentReport, bug: Option<Bug<'_>>) -> sarif::PropertyBag {
    let mut properties = BTreeMap::from([
        ("component".to_owned(), json!(component.name)),
        ("place".to_owned(), json!(component.place)),
    ]);
    if let Some(bug) = bug {
        properties.extend([
            ("case".to_owned(), bug.head.case.clone()),
            ("caseFile".to_owned(), json!(bug.head.case_file)),
            ("replay".to_owned(), json!(bug.head.replay)),
            ("breaksToo".to_owned(), json!(bug.breaks_too())),
        ]);
    }
    sarif::PropertyBag::builder().additional_properties(properties).build()
}

/// Whether everything ran, and what did not.
fn invocation(report: &Report) -> sarif::Invocation {
    let broken = report.components.iter().filter(|component| component.status == Status::Error);
    let notification = |level: &str, component: &ComponentReport, text: &str| {
        sarif::Notification::builder()
            .level(json!(level))
            .message(message(format!("{} {text}", component.title())))
            .locations(vec![location(component)])
            .build()
    };
    let mut notifications: Vec<sarif::Notification> = broken
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
    sarif::Invocation::builder()
        .execution_successful(successful)
        .tool_execution_notifications(notifications)
        .build()
}

/// Where the component is written, or else where it is declared.
fn location(component: &ComponentReport) -> sarif::Location {
    located(component, component.source.as_ref().or(component.location.as_ref()))
}

fn located(component: &ComponentReport, at: Option<&Location>) -> sarif::Location {
    place(&component.name, &component.title(), at)
}

/// The line at which something stands, with the name and the title of what it is about.
pub(crate) fn place(name: &str, title: &str, at: Option<&Location>) -> sarif::Location {
    let name = sarif::LogicalLocation::builder().name(name).fully_qualified_name(title).build();
    let mut location = sarif::Location::builder().logical_locations(vec![name]).build();
    location.physical_location = at.map(|at| {
        let line = i64::try_from(at.line).unwrap_or(i64::MAX);
        sarif::PhysicalLocation::builder()
            .artifact_location(sarif::ArtifactLocation::builder().uri(uri(&at.file)).build())
            .region(sarif::Region::builder().start_line(line).build())
            .build()
    });
    location
}

/// A message of plain text.
pub(crate) fn message(text: String) -> sarif::Message {
    sarif::Message::builder().text(text).build()
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
