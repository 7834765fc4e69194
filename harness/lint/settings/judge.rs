//! What all rules say of a configuration.

use crate::report::{Kind, RuleStatus, Severity, Subject, Verdict};
use crate::rules::{Asked, judge_by, not_applicable};
use crate::settings::{Settings, fields, rules};

/// Rules that speak about supervised training too.
const FOR_ALL: [&str; 2] = ["contradiction", "unknown-field"];

impl Settings {
    /// What they are for: a library, a fork of one, or `unknown`.
    pub fn name(&self) -> String {
        let library = self.library.map(|library| library.name().to_owned());
        self.other.clone().or(library).unwrap_or_else(|| "unknown".to_owned())
    }

    /// The version of the library whose defaults and fields are assumed; none where none are.
    pub fn version(&self) -> Option<&'static str> {
        self.library.filter(|_| self.other.is_none()).and_then(fields::version)
    }

    /// Judges them by all rules.
    pub fn judge(&self, asked: &Asked) -> Subject {
        let judged = judge_by(rules::all(), asked, |rule| {
            match self.is_supervised && !FOR_ALL.contains(&rule.id) {
                true => Err(not_applicable("supervised training and distillation have no rewards")),
                false => (rule.head.check)(self),
            }
        });
        let count = |status| judged.rules.iter().filter(|one| one.status == status).count();
        let known = count(RuleStatus::Fires) + count(RuleStatus::Quiet);
        let verdict = if judged.findings.iter().any(|one| one.severity > Severity::Note) {
            Verdict::Findings
        } else if known > count(RuleStatus::Insufficient) {
            // Of a few rules alone nothing follows.
            Verdict::NothingFound
        } else {
            Verdict::Insufficient
        };
        let name =
            self.files.first().map_or("settings".to_owned(), |file| file.display().to_string());
        Subject {
            kind: Kind::Config,
            name,
            files: self.files.clone(),
            format: self.format.clone(),
            library: Some(self.name()),
            library_version: self.version().map(str::to_owned),
            rows: self.fields.len() as u64,
            steps: None,
            segments: 1,
            verdict,
            settings: self.report(),
            metrics: Vec::new(),
            unknown_names: self.unread.keys().cloned().collect(),
            rules: judged.rules,
            findings: judged.findings,
            stages: judged.stages,
            warnings: self.warnings.clone(),
        }
    }
}
