//! Annotations of a GitHub workflow: lines on standard output that mark functions, or the
//! manifest's lines.

use std::fmt::Write as _;

use shakedown_engine::report::{ComponentReport, Location, Report, Status};

/// One line for each bug, each invariant that is not as declared, each component that could not run
/// and each warning.
pub(crate) fn annotations(report: &Report) -> String {
    let mut text = String::new();
    for component in &report.components {
        let mut line = |level: &str, what: &str, message: &str| {
            let title = property(&format!("{}{what}", component.title()));
            let place = marked(component, what).map_or(String::new(), |location| {
                format!("file={},line={},", property(&location.file), location.line)
            });
            let _ = writeln!(text, "::{level} {place}title={title}::{}", data(message));
        };
        if let (Status::Error, Some(reason)) = (component.status, &component.reason) {
            line("error", " could not run", reason);
        }
        for bug in component.bugs() {
            line("error", &format!(" · {}", bug.head.invariant), &bug.summary());
        }
        for (invariant, why) in component.not_as_declared() {
            line("error", &format!(" · {invariant}"), why);
        }
        unheard(component).for_each(|warning| line("warning", "", warning));
    }
    text
}

/// The line to mark: of a finding that of the function, where that is a file of the repository.
fn marked<'a>(component: &'a ComponentReport, what: &str) -> Option<&'a Location> {
    let source = component.source.as_ref().filter(|source| !source.file.starts_with('/'));
    source.filter(|_| !what.is_empty()).or(component.location.as_ref())
}

/// The warnings, but for those that are said of an invariant already.
fn unheard(component: &ComponentReport) -> impl Iterator<Item = &String> {
    let said = |warning: &str| {
        let mut failed = component
            .invariants
            .iter()
            .filter_map(|one| one.reason.as_ref().map(|reason| format!("{} {reason}", one.id)));
        failed.any(|said| said == warning)
    };
    component.warnings.iter().filter(move |warning| !said(warning))
}

/// A message in GitHub's escapes.
pub(crate) fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property, in which separators are escaped too.
pub(crate) fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_warning_marks_the_line_and_is_not_said_twice() {
        let component = json!({
            "name": "returns", "contract": "returns", "stage": "advantage", "place": "cpu/f32",
            "location": {"file": "a,b.yaml", "line": 3}, "status": "fail", "reason": null,
            "cases": 1, "calls": 1, "elapsed_ms": 0, "findings": [], "classes": {},
            "invariants": [
                {"id": "inputs-unchanged", "status": "fail", "cases": 1, "reason": "holds"},
            ],
            "warnings": ["inputs-unchanged holds", "no case of the class `x` was generated"],
        });
        let report = json!({
            "schema": shakedown_engine::report::SCHEMA, "version": "0.1.0", "seed": 0,
            "elapsed_ms": 0,
            "components": [component],
        });
        let report: Report = serde_json::from_value(report).unwrap();
        let place = "file=a%2Cb.yaml,line=3,title=returns · cpu/f32";
        let warning = "no case of the class `x` was generated";
        let expected =
            format!("::error {place} · inputs-unchanged::holds\n::warning {place}::{warning}\n");
        assert_eq!(annotations(&report), expected);
    }

    #[test]
    fn what_would_end_a_line_or_a_property_is_escaped() {
        assert_eq!(data("100 %:\r\nno, 5"), "100 %25:%0D%0Ano, 5");
        assert_eq!(property("a:b,c%0A\n"), "a%3Ab%2Cc%250A%0A");
    }
}
