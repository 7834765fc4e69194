//! What all rules say of a data set.

use crate::datasets::data::{Dataset, Reading};
use crate::datasets::formats;
use crate::datasets::hits::Place;
use crate::datasets::known::Known;
use crate::datasets::rules;
use crate::datasets::seen::Seen;
use crate::report::{Kind, RuleStatus, Severity, Subject, Verdict};
use crate::rules::{Asked, judge};
use crate::settings::Settings;

impl Dataset {
    /// Judges it by all rules.
    pub fn judge(&self, asked: &Asked) -> Subject {
        let judged = judge(self, rules::all(), asked);
        let is_judged = |status| matches!(status, RuleStatus::Fires | RuleStatus::Quiet);
        let verdict = if judged.findings.iter().any(|one| one.severity > Severity::Note) {
            Verdict::Findings
        } else if !judged.rules.iter().any(|one| is_judged(one.status)) {
            Verdict::Insufficient
        } else {
            Verdict::NothingFound
        };
        let unknown = self.seen.names.iter().filter(|name| !self.seen.columns.knows(name));
        Subject {
            kind: Kind::Data,
            name: self.name.clone(),
            files: self.files.clone(),
            format: self.format.clone(),
            library: self.library.map(|library| library.name().to_owned()),
            library_version: None,
            rows: self.seen.rows,
            steps: None,
            segments: 1,
            verdict,
            settings: self.settings.as_ref().map(Settings::report).unwrap_or_default(),
            metrics: Vec::new(),
            unknown_names: unknown.cloned().collect(),
            rules: judged.rules,
            findings: judged.findings,
            stages: judged.stages,
            warnings: self.warnings.clone(),
        }
    }
}

/// Reads and judges arbitrary bytes, for a fuzzer.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let reading = Reading { shows_text: true, ..Reading::default() };
    let known = Known { limit: Some(8), ..Known::new(&reading) };
    let mut seen = Seen::default();
    let mut take = |line, item| seen.take(Place { file: 0, line }, item, &known);
    if formats::read_bytes(bytes, &mut take).is_ok() {
        seen.settle(&known);
        let _ = Dataset::new(seen, &known, &reading).judge(&Asked::default());
    }
}
