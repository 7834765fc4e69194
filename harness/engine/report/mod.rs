//! Reports: what a run says, as data (JSON, schema 1).

pub mod bugs;
pub mod json;
pub mod merge;
mod points;
mod shard;
pub mod text;

use std::collections::BTreeMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use shakedown_core::contract::stage::{Pitfall, Stage};
use shakedown_core::value::place::Place;
use shakedown_core::value::redact;
use shakedown_core::value::text::{count, harmless};

pub use points::{Point, Real};
pub use shakedown_core::value::exit::{ExitCode, milliseconds};
pub use shakedown_core::value::location::Location;
pub use shard::Shard;

/// The JSON schema that reports follow.
pub const SCHEMA: &str = "shakedown/report/1";

/// What one run says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of shakedown.
    pub version: String,
    /// The seed of the random cases.
    pub seed: u64,
    /// Which part of a run it is; `None` for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// How long the run took.
    pub elapsed_ms: u64,
    /// The components, in the order of the manifest, one entry for each place.
    pub components: Vec<ComponentReport>,
}

/// What a run says of one component at one place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentReport {
    /// Its name in the manifest.
    pub name: String,
    /// Its contract.
    pub contract: String,
    /// The stage of the pipeline.
    pub stage: Stage,
    /// Where it ran.
    pub place: Place,
    /// Where it is declared; `None` where it is in no manifest.
    pub location: Option<Location>,
    /// Where its function is written; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Location>,
    /// What came of it.
    pub status: Status,
    /// Why it was skipped or could not run.
    pub reason: Option<String>,
    /// How many cases it was given.
    pub cases: u64,
    /// How many it should have been given: fewer where every invariant was broken before the last.
    #[serde(default)]
    pub planned: u64,
    /// On how many of its cases the call failed, so that nothing could be said of an output.
    #[serde(default)]
    pub unanswered: u64,
    /// Why it was not given all of them; `None` where it was, or where nothing was left to find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// How often it was called, shrinking and diagnosis included.
    pub calls: u64,
    /// How long that took.
    pub elapsed_ms: u64,
    /// What it took so long for.
    #[serde(default)]
    pub times: Times,
    /// The invariants, in the order of the contract.
    pub invariants: Vec<InvariantReport>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// How many cases of each input class were generated.
    pub classes: BTreeMap<String, u64>,
    /// What a reader should know besides: classes never reached, checks that were cut short.
    pub warnings: Vec<String>,
}

/// What came of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every invariant holds.
    Pass,
    /// There are findings.
    Fail,
    /// It could not be loaded.
    Error,
    /// The place is not here.
    Skipped,
}

/// How long the parts of a check took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Until the component was ready: its process, its imports.
    pub load_ms: u64,
    /// The cases, with what was made of them.
    pub cases_ms: u64,
    /// Making the failing cases small.
    pub shrinking_ms: u64,
    /// Saying what is wrong.
    pub diagnosis_ms: u64,
}

impl Times {
    fn add(&mut self, other: Times) {
        self.load_ms += other.load_ms;
        self.cases_ms += other.cases_ms;
        self.shrinking_ms += other.shrinking_ms;
        self.diagnosis_ms += other.diagnosis_ms;
    }
}

/// Why a check ended before its last case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// The time for it was over.
    Time,
    /// Somebody stopped the process.
    Interrupted,
    /// The component hung or died too often.
    GaveUp,
}

impl Cut {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Cut::Time => "time",
            Cut::Interrupted => "interrupted",
            Cut::GaveUp => "gave up",
        }
    }
}

/// What came of one invariant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvariantReport {
    /// Its id.
    pub id: String,
    /// What came of it.
    pub status: InvariantStatus,
    /// On how many cases it was checked.
    pub cases: u64,
    /// Why it was skipped, or is known to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What came of one invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvariantStatus {
    /// It held on every case.
    Pass,
    /// It was broken; or it is declared to fail and did not.
    Fail,
    /// It does not apply here, or was left out on request; the reason says why.
    Skipped,
    /// No case was one that it speaks about.
    Vacuous,
    /// It was broken, as declared.
    Known,
}

/// One thing that is wrong with a component.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The invariant.
    pub invariant: String,
    /// The bug that it is a finding of, from 1 on; 0 where that was not asked.
    #[serde(default)]
    pub bug: u64,
    /// The kind of mistake.
    pub pitfall: Pitfall,
    /// What the invariant claims.
    pub claim: String,
    /// What was found on the smallest case, both numbers in it.
    pub found: String,
    /// How many cases were checked until the first that broke it.
    pub cases_to_failure: u64,
    /// How many candidates the shrinker tried.
    pub shrink_calls: u64,
    /// The smallest case.
    pub case: serde_json::Value,
    /// What the component gave for it, by field; `None` where the call failed.
    pub output: Option<serde_json::Value>,
    /// What the definition gives for it, by field, `{}` for what it leaves open; empty where there
    /// is no oracle.
    pub expected: serde_json::Value,
    /// The same for people, with what the component gave.
    pub shown: String,
    /// The kept case that broke it, and why somebody kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// Where the case is kept.
    pub case_file: Option<String>,
    /// How to call the component on it again.
    pub replay: String,
    /// Which input classes break it.
    pub classes: Classes,
    /// Which known bugs it behaves like, the best first.
    pub diagnosis: Vec<Diagnosis>,
    /// Where nothing is known to behave like it: on which outputs the component is wrong, and
    /// whether only after other calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// Which input classes break an invariant, and on which it holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classes {
    /// Some case of the class breaks it.
    pub fails: Vec<String>,
    /// Every case of the class that was tried keeps it.
    pub holds: Vec<String>,
}

/// What a component behaves as: a known bug, or another value in the place of a right one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// The fault's id, or what is otherwise in a few words: `epsilon: 0.1`.
    pub fault: String,
    /// In how many cases the component does what the fault does wherever the fault is wrong.
    pub matches: u64,
    /// Out of how many in which the fault is wrong anywhere.
    pub of: u64,
    /// The share of the component's wrong numbers that the fault explains.
    pub explains: f64,
    /// What the fault does wrong; empty where it is no fault of the contract.
    pub summary: String,
    /// What is otherwise, to stand after "as if".
    #[serde(default)]
    pub told: String,
    /// How well it agrees.
    #[serde(default)]
    pub strength: Strength,
    /// Other names that explain as much.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// Whether not numbers were compared but which invariants break.
    pub by_outcomes: bool,
    /// Some of the numbers that were compared. With the first finding of a component that names
    /// the fault; empty with the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point<Real>>,
    /// Some of the texts that were compared, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<Point<Option<String>>>,
}

/// How well a diagnosis agrees with a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// On everything that was compared, and nothing else is wrong.
    Exactly,
    /// Wherever the hypothesis, or the region that is told, is wrong; the component is right
    /// elsewhere or has another bug.
    Region,
    /// On a part.
    #[default]
    Partly,
}

impl ComponentReport {
    /// Its name and place: `grpo · cpu/f32`.
    pub fn title(&self) -> String {
        format!("{} · {}", harmless(&self.name), self.place)
    }

    /// The same without secrets, and with texts that do nothing to who shows them. Values of cases
    /// and outputs stay otherwise.
    pub fn harmless(self) -> ComponentReport {
        let texts = serde_json::to_value(&self).expect("a report can be written");
        serde_json::from_value(clean(texts)).expect("its texts are texts")
    }

    /// The finding of an invariant; none where it holds, against what is declared, or is known.
    pub fn finding(&self, invariant: &InvariantReport) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.invariant == invariant.id)
    }

    /// On how many cases it was checked, what kept it from more, and what was never reached:
    /// `12 of 372 cases (time)`.
    pub fn extent(&self) -> String {
        let answered = self.cases - self.unanswered.min(self.cases);
        let of = if self.cut.is_some() { self.planned.max(self.cases) } else { self.cases };
        let mut why = Vec::new();
        why.extend(self.cut.map(|cut| cut.name().to_owned()));
        if self.unanswered > 0 {
            why.push(format!("{} without an answer", self.unanswered));
        }
        let missed = self.classes.keys().filter(|class| self.never_reached(class)).count();
        if missed > 0 {
            let classes = if missed == 1 { "class" } else { "classes" };
            why.push(format!("{missed} {classes} of input never reached"));
        }
        let total = count(of, "case");
        let extent = if answered == of { total } else { format!("{answered} of {total}") };
        if why.is_empty() { extent } else { format!("{extent} ({})", why.join(", ")) }
    }

    /// Adds what was found under other values of some options, `gamma: 0.9`.
    pub(crate) fn add(&mut self, other: ComponentReport, under: &str) {
        self.cases += other.cases;
        self.planned += other.planned;
        self.unanswered += other.unanswered;
        self.calls += other.calls;
        self.elapsed_ms += other.elapsed_ms;
        self.times.add(other.times);
        self.cut = self.cut.or(other.cut);
        for one in &mut self.invariants {
            let again = other.invariants.iter().find(|again| again.id == one.id);
            if let Some(again) = again.filter(|again| again.cases > 0) {
                one.cases += again.cases;
                one.status = again.status;
            }
        }
        for finding in other.findings {
            let found = format!("under `{under}`: {}", finding.found);
            self.status = Status::Fail;
            self.findings.push(Finding { found, ..finding });
        }
        self.number_bugs();
    }

    /// Whether a class that should have been generated never was.
    pub fn never_reached(&self, class: &str) -> bool {
        self.warnings.contains(&never_reached(class))
    }
}

/// A report without secrets and home folders, and what is said in it harmless; names, paths and
/// what came of a case as they are otherwise. What was given is ours: nothing is taken out of it.
fn clean(json: Json) -> Json {
    match json {
        Json::String(text) => {
            redact::json(Json::String(redact::homes(&harmless(&text)).into_owned()), true)
        }
        Json::Array(items) => items.into_iter().map(clean).collect(),
        Json::Object(fields) => {
            let one = |(key, value): (String, Json)| {
                let value = match (&*key, value) {
                    ("case" | "expected" | "texts", value) => value,
                    ("shown", Json::String(text)) => Json::String(harmless(&text)),
                    ("name" | "location" | "source" | "case_file" | "replay" | "output", value) => {
                        redact::json(value, true)
                    }
                    (_, value) => clean(value),
                };
                (key, value)
            };
            Json::Object(fields.into_iter().map(one).collect())
        }
        other => other,
    }
}

/// The warning about a class that should have been generated and never was.
pub(crate) fn never_reached(class: &str) -> String {
    format!("no case of the class `{class}` was generated")
}

impl Report {
    /// The report of a run that ends now.
    pub fn new(
        seed: u64,
        shard: Option<Shard>,
        started: Instant,
        components: Vec<ComponentReport>,
    ) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            shard,
            elapsed_ms: milliseconds(started),
            components: components.into_iter().map(ComponentReport::harmless).collect(),
        }
    }

    /// The exit code of a run with this report.
    pub fn exit_code(&self) -> ExitCode {
        let any = |status| self.components.iter().any(|component| component.status == status);
        let checked = |component: &ComponentReport| {
            component.invariants.iter().any(|invariant| invariant.cases > 0)
        };
        // A shard of more parts than there are components is no mistake.
        let empty_shard = self.shard.is_some() && self.components.is_empty();
        if any(Status::Error) {
            ExitCode::CouldNotRun
        } else if any(Status::Fail) {
            ExitCode::Findings
        } else if self.is_interrupted() {
            ExitCode::Interrupted
        } else if !self.components.iter().any(checked) && !empty_shard {
            ExitCode::NothingChecked
        } else {
            ExitCode::AllHold
        }
    }

    /// Whether somebody stopped the run before its end.
    pub fn is_interrupted(&self) -> bool {
        self.components.iter().any(|component| component.cut == Some(Cut::Interrupted))
    }

    /// The report as JSON text.
    ///
    /// # Panics
    /// Never: every part of a report can be written.
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a report can be written");
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component on whose cases one invariant was exercised.
    fn component(status: Status, cases: u64) -> ComponentReport {
        let id = "oracle".to_owned();
        let exercised = InvariantReport { id, status: InvariantStatus::Pass, cases, reason: None };
        ComponentReport {
            name: "ours".to_owned(),
            contract: "returns".to_owned(),
            stage: Stage::Advantage,
            place: Place::CPU_F32,
            location: None,
            source: None,
            status,
            reason: None,
            cases,
            planned: cases,
            unanswered: 0,
            cut: None,
            calls: 0,
            elapsed_ms: 0,
            times: Times::default(),
            invariants: vec![exercised],
            findings: Vec::new(),
            classes: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn what_is_said_has_no_secret_and_no_home_folder_and_inputs_stay_as_they_were() {
        let given = "user: alice9 password=hunter22 /home/al/a.py";
        let mut report = component(Status::Fail, 1);
        report.reason = Some(given.to_owned());
        let case = serde_json::json!({"texts": [given], "password": "hunter22"});
        report.findings.push(Finding { case: case.clone(), shown: given.into(), ..finding(given) });
        let clean = report.harmless();
        let said = "user: alice9 password=‹redacted› ~/a.py";
        assert_eq!((clean.reason.as_deref(), &*clean.findings[0].found), (Some(said), said));
        assert_eq!((&clean.findings[0].case, &*clean.findings[0].shown), (&case, given));
    }

    fn finding(found: &str) -> Finding {
        Finding {
            invariant: "oracle".to_owned(),
            bug: 0,
            pitfall: Pitfall::Configuration,
            claim: String::new(),
            found: found.to_owned(),
            cases_to_failure: 1,
            shrink_calls: 0,
            case: Json::Null,
            output: None,
            expected: Json::Null,
            shown: String::new(),
            again: None,
            case_file: None,
            replay: String::new(),
            classes: Classes::default(),
            diagnosis: Vec::new(),
            region: None,
        }
    }

    fn code(components: Vec<ComponentReport>) -> ExitCode {
        Report::new(0, None, Instant::now(), components).exit_code()
    }

    #[test]
    fn the_worst_of_all_components_is_the_exit_code() {
        let passes = || component(Status::Pass, 3);
        let interrupted =
            || ComponentReport { cut: Some(Cut::Interrupted), ..component(Status::Pass, 3) };
        let out_of_time = ComponentReport { cut: Some(Cut::Time), ..passes() };
        let (fails, error) = (component(Status::Fail, 3), component(Status::Error, 0));
        let skipped = || component(Status::Skipped, 0);
        assert_eq!(code(vec![passes(), out_of_time]), ExitCode::AllHold);
        assert_eq!(code(vec![skipped(), passes()]), ExitCode::AllHold);
        assert_eq!(code(vec![skipped(), skipped()]), ExitCode::NothingChecked);
        assert_eq!(code(Vec::new()), ExitCode::NothingChecked);
        assert_eq!(code(vec![passes(), interrupted()]), ExitCode::Interrupted);
        assert_eq!(code(vec![interrupted(), fails.clone()]), ExitCode::Findings);
        assert_eq!(code(vec![passes(), fails, error]), ExitCode::CouldNotRun);
    }

    #[test]
    fn only_a_shard_may_have_no_component() {
        let shard: Shard = "3/3".parse().unwrap();
        let of_shard = |components| Report::new(0, Some(shard), Instant::now(), components);
        assert_eq!(of_shard(Vec::new()).exit_code(), ExitCode::AllHold);
        let skipped = vec![component(Status::Skipped, 0)];
        assert_eq!(of_shard(skipped).exit_code(), ExitCode::NothingChecked);
    }

    #[test]
    fn the_extent_counts_what_was_answered_and_says_what_is_missing() {
        let whole = component(Status::Pass, 12);
        assert_eq!(whole.extent(), "12 cases");
        let fewer = ComponentReport { planned: 372, ..whole.clone() };
        assert_eq!(fewer.extent(), "12 cases");
        let cut = ComponentReport { cut: Some(Cut::Time), ..fewer };
        assert_eq!(cut.extent(), "12 of 372 cases (time)");
        let silent = ComponentReport { unanswered: 5, ..whole.clone() };
        assert_eq!(silent.extent(), "7 of 12 cases (5 without an answer)");
        let silent = ComponentReport { unanswered: 12, ..silent };
        assert_eq!(silent.extent(), "0 of 12 cases (12 without an answer)");
        let classes: BTreeMap<String, u64> =
            ["masked", "ties", "other"].map(|class| (class.to_owned(), 0)).into();
        let warnings = vec![never_reached("ties")];
        let missed = ComponentReport { classes, warnings, ..whole };
        assert_eq!(missed.extent(), "12 cases (1 class of input never reached)");
        let warnings = vec![never_reached("ties"), never_reached("masked")];
        let missed = ComponentReport { warnings, unanswered: 1, ..missed };
        let said = "11 of 12 cases (1 without an answer, 2 classes of input never reached)";
        assert_eq!(missed.extent(), said);
    }

    #[test]
    fn what_was_found_under_other_options_is_added() {
        let mut report = component(Status::Pass, 12);
        let under = component(Status::Pass, 0);
        let other = ComponentReport { cases: 4, planned: 5, unanswered: 3, calls: 7, ..under };
        report.add(ComponentReport { elapsed_ms: 6, ..other }, "gamma: 0.9");
        let ComponentReport { cases, planned, unanswered, calls, elapsed_ms, .. } = report;
        assert_eq!((cases, planned, unanswered, calls, elapsed_ms), (16, 17, 3, 7, 6));
        // What no case exercised there says nothing.
        let mut vacuous = component(Status::Pass, 0);
        vacuous.invariants[0].status = InvariantStatus::Vacuous;
        report.add(vacuous, "gamma: 0.9");
        assert_eq!(report.invariants[0].status, InvariantStatus::Pass);
        let mut fails = component(Status::Fail, 2);
        fails.invariants[0].status = InvariantStatus::Fail;
        fails.findings.push(finding("loss is 2, expected 1"));
        report.add(fails, "gamma: 0.9");
        assert_eq!(report.status, Status::Fail);
        assert_eq!(report.findings[0].found, "under `gamma: 0.9`: loss is 2, expected 1");
        assert_eq!(report.invariants[0].status, InvariantStatus::Fail);
        assert_eq!(report.invariants[0].cases, 14);
    }
}
