//! What all rules say of a run.

use crate::report::{FEW_ROWS, Figure, Kind, Metric, RuleStatus, Severity, Subject, Verdict};
use crate::rules::{Asked, judge};
use crate::runs::run::Run;
use crate::runs::series::{self, Series};
use crate::runs::statistics::{Statistics, mean};
use crate::runs::{derived, rules};

impl Run {
    /// Judges it by all rules.
    pub fn judge(&self, asked: &Asked) -> Subject {
        let mut judged = judge(self, rules::all(), asked);
        for finding in &mut judged.findings {
            if let (None, Some([first, _]), Some(evidence)) =
                (&finding.location, finding.steps, finding.evidence.first())
            {
                finding.location = self.location(evidence.of.name(), first);
            }
        }
        let is_judged = |status| matches!(status, RuleStatus::Fires | RuleStatus::Quiet);
        let verdict = if judged.findings.iter().any(|one| one.severity > Severity::Note) {
            Verdict::Findings
        } else if self.rows < FEW_ROWS || !judged.rules.iter().any(|one| is_judged(one.status)) {
            Verdict::Insufficient
        } else {
            Verdict::NothingFound
        };
        Subject {
            kind: Kind::Run,
            name: self.name.clone(),
            files: self.files.clone(),
            format: self.format.clone(),
            library: self.library.map(|library| library.name().to_owned()),
            library_version: None,
            rows: self.rows,
            steps: self.steps,
            segments: 1 + self.restarts.len() as u64,
            verdict,
            settings: self.settings.report(),
            metrics: self.series.iter().filter_map(|(id, one)| self.metric(id, one)).collect(),
            unknown_names: self.unknown.iter().cloned().collect(),
            rules: judged.rules,
            findings: judged.findings,
            stages: judged.stages,
            warnings: self.warnings.clone(),
        }
    }

    fn metric(&self, id: &str, series: &Series) -> Option<Metric> {
        if derived::DERIVED.iter().any(|derived| derived.id == id) {
            return None;
        }
        let statistics = Statistics::of(series);
        let figure = |of: fn(&Statistics) -> f64| Figure(statistics.as_ref().map_or(f64::NAN, of));
        let (points, nonfinite) = (series.points(), series.nonfinite());
        Some(Metric {
            id: id.to_owned(),
            name: series.name.clone(),
            points,
            missing: self.rows.saturating_sub(points + nonfinite),
            nonfinite,
            resolution: series.resolution,
            first: figure(|s| s.first),
            mid: figure(|s| s.mid),
            last: figure(|s| s.last),
            min: Figure(series.min()),
            max: Figure(series.max()),
            z: figure(|s| s.z),
            tau: figure(|s| s.tau),
            spark: spark(series),
        })
    }
}

/// At most this many points make a picture of a series.
const SPARK_POINTS: usize = 256;

fn spark(series: &Series) -> Vec<[Figure; 4]> {
    let finite: Vec<&series::Bucket> = series.finite().collect();
    let chunks = finite.chunks(finite.len().div_ceil(SPARK_POINTS).max(1));
    chunks
        .map(|chunk| {
            let min = chunk.iter().map(|bucket| bucket.min).fold(f64::NAN, f64::min);
            let max = chunk.iter().map(|bucket| bucket.max).fold(f64::NAN, f64::max);
            let means: Vec<f64> = chunk.iter().map(|bucket| bucket.mean).collect();
            [chunk[0].steps[0] as f64, min, mean(&means), max].map(Figure)
        })
        .collect()
}
