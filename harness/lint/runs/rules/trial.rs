//! Small runs to try rules on.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::report::{RuleStatus, Severity, Subject};
use crate::rules::Asked;
use crate::runs::Run;
use crate::runs::recorder::Recorder;
use crate::runs::row::Cell;
use crate::settings::{Library, Origin};

/// The metrics of a row, by their ids.
pub(super) type Cells = Vec<(&'static str, f64)>;

/// A run of so many rows, of steps that begin at 1.
pub(super) fn run(rows: usize, of: impl Fn(usize) -> Cells) -> Run {
    recorded((0..rows).map(|row| (row as i64 + 1, exact(of(row)))))
}

/// The same, printed with so many decimals.
pub(super) fn rounded(decimals: i32, rows: usize, of: impl Fn(usize) -> Cells) -> Run {
    let unit = 10.0_f64.powi(-decimals);
    let cell = |x: f64| Cell { value: (x / unit).round() * unit, resolution: unit / 2.0 };
    let row = |row| of(row).into_iter().map(|(id, x)| (id, cell(x))).collect();
    recorded((0..rows).map(|at| (at as i64 + 1, row(at))))
}

/// A run whose rows have these steps.
pub(super) fn stepped(rows: impl IntoIterator<Item = (i64, Cells)>) -> Run {
    recorded(rows.into_iter().map(|(step, cells)| (step, exact(cells))))
}

fn exact(cells: Cells) -> Vec<(&'static str, Cell)> {
    cells.into_iter().map(|(id, value)| (id, Cell::from(value))).collect()
}

fn recorded(rows: impl Iterator<Item = (i64, Vec<(&'static str, Cell)>)>) -> Run {
    let rows: Vec<(i64, Vec<(&'static str, Cell)>)> = rows.collect();
    let ids = rows.iter().flat_map(|(_, cells)| cells.iter().map(|(id, _)| (*id).to_owned()));
    let own_names: HashMap<String, String> = ids.map(|id| (id.clone(), id)).collect();
    let mut recorder = Recorder::new(own_names);
    for (line, (step, mut cells)) in rows.into_iter().enumerate() {
        cells.push(("step", Cell::from(step as f64)));
        recorder.row(line + 1, cells);
    }
    Run::new("trial".to_owned(), vec![], "trial", recorder.finish())
}

impl Run {
    /// The same, of this library and with these settings.
    pub(super) fn with(mut self, library: Option<Library>, settings: &[(&str, Json)]) -> Run {
        self.library = library.or(self.library);
        for (id, value) in settings {
            self.settings.set(id, value.clone(), Origin::Flag);
        }
        self
    }
}

fn judged(run: &Run, rule: &str) -> Subject {
    run.judge(&Asked { only: vec![rule.to_owned()], skip: vec![] })
}

/// How severe what a rule finds is, finding by finding; nothing where it could not be judged, which
/// [`status`] tells from quiet.
pub(super) fn severities(run: &Run, rule: &str) -> Vec<Severity> {
    judged(run, rule).findings.iter().map(|finding| finding.severity).collect()
}

/// What a rule finds, in its sentences.
pub(super) fn found(run: &Run, rule: &str) -> Vec<String> {
    judged(run, rule).findings.into_iter().map(|finding| finding.found).collect()
}

/// What came of a rule.
pub(super) fn status(run: &Run, rule: &str) -> RuleStatus {
    let rules = judged(run, rule).rules;
    rules.into_iter().find(|one| one.id == rule).expect("a rule has its id").status
}

/// A number in [0, 1) that depends on nothing but a row, and looks like chance.
pub(super) fn chance(row: usize) -> f64 {
    ((row as f64 + 1.0) * 12.9898).sin().mul_add(43_758.545_3, 0.0).rem_euclid(1.0)
}
