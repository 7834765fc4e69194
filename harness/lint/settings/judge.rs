//! What all rules say of a configuration.

use crate::report::{Kind, RuleStatus, Severity, Subject, Verdict};
use crate::rules::{Asked, judge_by, not_applicable};
use crate::settings::{Settings, rules};

/// Rules that speak about supervised training too.
const FOR_ALL: [&str; 2] = ["contradiction", "unknown-field"];

impl Settings {
    /// Judges them by all rules.
    pub fn judge(&self, asked: &Asked) -> Subject {
        let judged = judge_by(rules::all(), asked, |rule| {
            match self.is_supervised && !FOR_ALL.contains(&rule.id) {
                true => Err(not_applicable("supervised training and distillation have no rewards")),
                false => (rule.head.check)(self),
            }
        });
        let is_judged = |status| matches!(status, RuleStatus::Fires | RuleStatus::Quiet);
        let verdict = if judged.findings.iter().any(|one| one.severity > Severity::Note) {
            Verdict::Findings
        } else if judged.rules.iter().any(|one| is_judged(one.status)) {
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
            library: self.library.map(|library| library.name().to_owned()),
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
