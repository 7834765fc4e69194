//! The JSON report, schema 1, as strict as `serde` gets: a key more or less fails.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::folder::{Folder, Ran};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    pub(crate) schema: String,
    pub(crate) version: String,
    pub(crate) seed: u64,
    pub(crate) shard: Option<String>,
    pub(crate) elapsed_ms: u64,
    pub(crate) components: Vec<Component>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Component {
    pub(crate) name: String,
    pub(crate) contract: String,
    pub(crate) stage: String,
    pub(crate) place: String,
    /// None without a manifest.
    #[serde(deserialize_with = "given")]
    pub(crate) location: Option<Location>,
    /// Where its function is written, where that is known.
    #[serde(default)]
    pub(crate) source: Option<Location>,
    pub(crate) status: Status,
    #[serde(deserialize_with = "given")]
    pub(crate) reason: Option<String>,
    pub(crate) cases: u64,
    pub(crate) planned: u64,
    pub(crate) unanswered: u64,
    #[serde(default)]
    pub(crate) cut: Option<String>,
    pub(crate) calls: u64,
    pub(crate) elapsed_ms: u64,
    pub(crate) times: BTreeMap<String, u64>,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) classes: BTreeMap<String, u64>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Location {
    pub(crate) file: String,
    pub(crate) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    Pass,
    Fail,
    Error,
    Skipped,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Invariant {
    pub(crate) id: String,
    pub(crate) status: InvariantStatus,
    pub(crate) cases: u64,
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum InvariantStatus {
    Pass,
    Fail,
    Skipped,
    Vacuous,
    Known,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finding {
    pub(crate) invariant: String,
    pub(crate) bug: u64,
    pub(crate) pitfall: String,
    pub(crate) claim: String,
    pub(crate) found: String,
    pub(crate) cases_to_failure: u64,
    pub(crate) shrink_calls: u64,
    pub(crate) case: Value,
    #[serde(deserialize_with = "given")]
    pub(crate) output: Option<Value>,
    pub(crate) expected: Value,
    pub(crate) shown: String,
    #[serde(deserialize_with = "given")]
    pub(crate) case_file: Option<String>,
    pub(crate) replay: String,
    pub(crate) classes: Classes,
    pub(crate) diagnosis: Vec<Diagnosis>,
    #[serde(default)]
    pub(crate) region: Option<String>,
    #[serde(default)]
    pub(crate) again: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Classes {
    pub(crate) fails: Vec<String>,
    pub(crate) holds: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diagnosis {
    pub(crate) fault: String,
    pub(crate) matches: u64,
    pub(crate) of: u64,
    pub(crate) explains: f64,
    pub(crate) summary: String,
    pub(crate) told: String,
    pub(crate) strength: Strength,
    #[serde(default)]
    pub(crate) alike: Vec<String>,
    pub(crate) by_outcomes: bool,
    #[serde(default)]
    pub(crate) points: Vec<Point>,
    #[serde(default)]
    pub(crate) texts: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Strength {
    Exactly,
    Region,
    Partly,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Point {
    pub(crate) expected: Value,
    pub(crate) component: Value,
    pub(crate) fault: Value,
}

/// A key that may be null but must be there: serde lets a plain `Option` be absent.
fn given<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Option::deserialize(from)
}

/// Runs `check manifest.yaml` with more arguments and reads its report, which must be sound.
pub(crate) fn check(folder: &Folder, arguments: &[&str]) -> (Ran, Report) {
    run(folder, &[&["check", "manifest.yaml"], arguments].concat())
}

/// Runs any verb that reports and reads its report, which must be sound.
pub(crate) fn run(folder: &Folder, arguments: &[&str]) -> (Ran, Report) {
    let all = [arguments, &["--json", "report.json"]].concat();
    let ran = folder.run(&all);
    let text = std::fs::read_to_string(folder.path("report.json"))
        .unwrap_or_else(|error| panic!("no report: {error}\n{}{}", ran.stdout, ran.stderr));
    let report: Report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    report.assert_sound(folder);
    (ran, report)
}

impl Report {
    /// The component of a name.
    pub(crate) fn component(&self, name: &str) -> &Component {
        let found = self.components.iter().find(|component| component.name == name);
        found.unwrap_or_else(|| panic!("no component `{name}` in {self:#?}"))
    }

    /// What the parts of a report owe each other.
    fn assert_sound(&self, folder: &Folder) {
        assert_eq!(self.schema, "shakedown/report/1");
        assert_eq!(self.version, env!("CARGO_PKG_VERSION"));
        assert!(self.seed < u64::MAX && (!self.components.is_empty() || self.shard.is_some()));
        for component in &self.components {
            let Component { name, status, reason, cases, calls, .. } = component;
            assert!(self.elapsed_ms >= component.elapsed_ms, "{name} took longer than the run");
            assert!(!component.contract.is_empty() && !component.stage.is_empty(), "{name}");
            assert!(component.place.contains('/'), "{}", component.place);
            if let Some(Location { file, line }) = &component.location {
                let text = std::fs::read_to_string(folder.path(file)).unwrap();
                let declared = text.lines().nth(line - 1);
                let declared = declared.unwrap_or_else(|| panic!("{file}:{line}"));
                assert!(declared.contains(name.as_str()), "{file}:{line} is {declared:?}");
            }
            if let Some(Location { file, line }) = &component.source {
                assert!(file.ends_with(".py") && *line > 0, "{name} is written at {file}:{line}");
            }
            assert!(component.warnings.iter().all(|warning| !warning.is_empty()));
            let unfit = matches!(status, Status::Error | Status::Skipped);
            assert_eq!(unfit, reason.is_some(), "{name} is {status:?} because {reason:?}");
            let checked = component.invariants.iter().any(|invariant| invariant.cases > 0);
            let unanswered = component.unanswered == *cases;
            assert!(checked || unfit, "{name} is {status:?}");
            assert!(!unfit || !checked || unanswered, "{name} is {status:?}");
            assert!(component.unanswered <= *cases, "{name}");
            let parts = ["cases_ms", "diagnosis_ms", "load_ms", "shrinking_ms"];
            assert!(component.times.keys().eq(parts), "{:?}", component.times);
            let total: u64 = component.times.values().sum();
            assert!(total <= component.elapsed_ms, "{name}: {:?}", component.times);
            assert!(component.cut.is_none() || *cases < component.planned, "{name}");
            assert_eq!(*cases == 0, *calls == 0, "{name}");
            assert!(component.classes.values().all(|count| count <= cases), "{name}");
            for Invariant { id, status, cases: checked, reason } in &component.invariants {
                assert!(checked <= cases, "{id} was checked on {checked} of {cases} cases");
                let untouched =
                    matches!(status, InvariantStatus::Skipped | InvariantStatus::Vacuous);
                assert_eq!(untouched, *checked == 0, "{id} is {status:?} after {checked} cases");
                let needs = matches!(status, InvariantStatus::Skipped | InvariantStatus::Known);
                assert!(!needs || reason.as_ref().is_some_and(|r| !r.is_empty()), "{id}");
            }
            // Those of one bug stand together, and bugs are numbered in the order of the findings.
            let mut last = 0;
            for finding in &component.findings {
                assert!(finding.bug == last || finding.bug == last + 1, "{name}: bug after {last}");
                last = finding.bug;
                finding.assert_sound(component, folder);
            }
            assert!(component.findings.is_empty() || last > 0, "{name}");
            for head in component.heads() {
                let of_bug = component.findings.iter().filter(|one| one.bug == head.bug);
                assert!(component.also(head.bug).len() < of_bug.count(), "{name}");
            }
        }
    }
}

impl Component {
    /// The findings to tell, one of each bug, in order.
    pub(crate) fn heads(&self) -> Vec<&Finding> {
        let mut heads: Vec<&Finding> = Vec::new();
        for finding in &self.findings {
            if heads.last().is_none_or(|head| head.bug != finding.bug) {
                heads.push(finding);
            }
        }
        heads
    }

    /// The invariants of a bug besides that of the finding to tell, each once.
    pub(crate) fn also(&self, bug: u64) -> Vec<&str> {
        let mut ids: Vec<&str> = Vec::new();
        for one in self.findings.iter().filter(|one| one.bug == bug).skip(1) {
            if !ids.contains(&&*one.invariant) {
                ids.push(&one.invariant);
            }
        }
        ids
    }
}

impl Finding {
    fn assert_sound(&self, component: &Component, folder: &Folder) {
        let id = &self.invariant;
        assert_eq!(component.status, Status::Fail);
        let of_report = component.invariants.iter().find(|invariant| invariant.id == *id);
        assert_eq!(of_report.expect("it is listed").status, InvariantStatus::Fail, "{id}");
        assert!(!self.claim.is_empty() && !self.found.is_empty() && !self.pitfall.is_empty());
        assert!((1..=component.cases).contains(&self.cases_to_failure), "{id}");
        assert!(self.shrink_calls <= component.calls, "{id}");
        assert!(self.case.is_object(), "{id}: {}", self.case);
        let file = self.case_file.as_ref().expect("a finding of a manifest has a file");
        assert!(folder.path(file).is_file(), "{file}");
        assert!(self.shown.starts_with(char::is_alphabetic), "{id}: {}", self.shown);
        assert!(self.replay.contains(file.as_str()), "{id}: {}", self.replay);
        let Classes { fails, holds } = &self.classes;
        assert!(fails.iter().all(|class| !holds.contains(class)), "{fails:?} {holds:?}");
        assert!(self.output.as_ref().is_none_or(Value::is_object), "{id}: {:?}", self.output);
        assert!(self.expected.is_object(), "{id}: {}", self.expected);
        let unnamed = self.diagnosis.is_empty();
        assert!(self.region.as_ref().is_none_or(|region| unnamed && !region.is_empty()), "{id}");
        let begins = ["the kept case ", "an earlier run reported this bug"];
        let kept = |again: &String| begins.iter().any(|begin| again.starts_with(begin));
        assert!(self.again.as_ref().is_none_or(kept), "{id}: {:?}", self.again);
        for diagnosis in &self.diagnosis {
            diagnosis.assert_sound(component);
        }
    }
}

impl Diagnosis {
    fn assert_sound(&self, component: &Component) {
        let Diagnosis { fault, matches, of, explains, summary, told, strength, alike, .. } = self;
        let Diagnosis { by_outcomes, points, texts, .. } = self;
        assert!(!by_outcomes || *of > 0, "{fault}");
        assert!(matches <= of && (0.0..=1.0).contains(explains), "{fault}");
        assert!(!summary.is_empty() || !told.is_empty(), "{fault} is not told");
        assert!(*strength != Strength::Exactly || matches == of, "{fault}");
        assert!(!alike.contains(fault), "{fault} is like itself");
        assert!(points.len() <= 60 && texts.len() <= 5, "{fault}");
        let has_points = |one: &&Diagnosis| !one.points.is_empty() || !one.texts.is_empty();
        let named = component.findings.iter().flat_map(|finding| &finding.diagnosis);
        // Two variants of a fault may both be named.
        let same = |one: &&Diagnosis| {
            (&one.fault, one.matches, one.of, one.explains) == (fault, *matches, *of, *explains)
        };
        let named: Vec<&Diagnosis> = named.filter(same).collect();
        let later = named.iter().skip(1).any(has_points);
        assert!(!later, "{fault} has its points where it is first named, and only there");
        assert!(!by_outcomes || !has_points(&named[0]), "{fault}: no numbers were compared");
        for Point { expected, component, fault } in points {
            let word =
                |value: &Value| matches!(value.as_str(), Some("NaN" | "Infinity" | "-Infinity"));
            let number = |value: &Value| value.is_number() || word(value);
            assert!([expected, component, fault].into_iter().all(number), "{points:?}");
        }
        for Point { expected, component, fault } in texts {
            let text = |value: &Value| value.is_string() || value.is_null();
            assert!([expected, component, fault].into_iter().all(text), "{texts:?}");
        }
    }
}
