//! A diagnosis as annotations of a GitHub workflow.

use std::fmt::Write as _;

use crate::render::github::{data, property};
use shakedown_lint::report::{Diagnosis, Severity};

/// One line for each finding: a notice for a note, at its line where that is known.
pub(crate) fn annotations(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    for subject in &diagnosis.subjects {
        for finding in &subject.findings {
            let level = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "notice",
            };
            let place = finding.location.as_ref().map_or(String::new(), |location| {
                format!("file={},line={},", property(&location.file), location.line)
            });
            let title = property(&format!("{} · {}", subject.title(), finding.rule));
            let _ = writeln!(text, "::{level} {place}title={title}::{}", data(&finding.found));
        }
    }
    text
}
