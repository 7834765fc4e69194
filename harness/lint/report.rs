//! What was found out about runs, configurations and data sets, as data (JSON, schema
//! `shakedown/diagnosis/1`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use shakedown_core::contract::stage::Stage;
use shakedown_core::value::error::Error;
use shakedown_core::value::exit::{ExitCode, milliseconds};
pub use shakedown_core::value::location::Location;
use shakedown_core::value::redact;
use shakedown_core::value::text::harmless;

/// The JSON schema that diagnoses follow.
pub const SCHEMA: &str = "shakedown/diagnosis/1";

/// Fewer rows of a run than this say little.
pub const FEW_ROWS: u64 = 20;

/// What was found out about some subjects.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of shakedown.
    pub version: String,
    /// How long it took.
    pub elapsed_ms: u64,
    /// The runs, configurations and data sets, in the order given.
    pub subjects: Vec<Subject>,
}

impl Diagnosis {
    /// What was found out, without secrets; and without who and where somebody is, unless paths
    /// are to be kept.
    pub fn new(started: Instant, subjects: Vec<Subject>, keep_paths: bool) -> Diagnosis {
        let elapsed_ms = milliseconds(started);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let subjects = subjects.into_iter().map(|subject| subject.clean(keep_paths)).collect();
        Diagnosis { schema: SCHEMA.to_owned(), version, elapsed_ms, subjects }
    }

    /// The exit code where findings of this severity or a worse one fail. What another finding
    /// explains counts too.
    pub fn exit_code(&self, fail_on: Severity) -> ExitCode {
        let fails = |subject: &Subject| subject.findings.iter().any(|f| f.severity >= fail_on);
        if self.subjects.iter().any(fails) {
            ExitCode::Findings
        } else if self.subjects.iter().any(|subject| subject.judged() > 0) {
            ExitCode::AllHold
        } else {
            ExitCode::NothingChecked
        }
    }

    /// As JSON text.
    ///
    /// # Panics
    /// Never: every part of it can be written.
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a diagnosis can be written");
        text.push('\n');
        text
    }
}

impl Subject {
    /// How many rules fire or are quiet.
    pub fn judged(&self) -> usize {
        self.with(RuleStatus::Fires) + self.with(RuleStatus::Quiet)
    }

    /// How many rules came out so.
    pub fn with(&self, status: RuleStatus) -> usize {
        self.rules.iter().filter(|rule| rule.status == status).count()
    }

    /// The findings above a note that no other one explains.
    pub fn heads(&self) -> impl Iterator<Item = &Finding> {
        let all = self.findings.iter().filter(|one| one.severity > Severity::Note);
        all.filter(|one| one.explained_by.is_none())
    }

    /// The findings above a note that follow from another one.
    pub fn following<'a>(&'a self, head: &'a Finding) -> impl Iterator<Item = &'a Finding> {
        let all = self.findings.iter().filter(|one| one.severity > Severity::Note);
        all.filter(|one| one.explained_by.as_ref() == Some(&head.rule))
    }

    /// The notes.
    pub fn notes(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|one| one.severity == Severity::Note)
    }

    /// The library, with the version that is assumed: `verl 0.10.0`, `unknown library`.
    pub fn of_library(&self) -> Option<String> {
        let library = self.library.as_deref()?;
        match &self.library_version {
            Some(version) => Some(format!("{library} {version}")),
            None if library == "unknown" => Some("unknown library".to_owned()),
            None => Some(library.to_owned()),
        }
    }

    /// Its kind and name: `run · logs/a.jsonl`.
    pub fn title(&self) -> String {
        format!("{} · {}", self.kind.name(), harmless(&self.name))
    }

    /// The same without secrets, and with texts that do nothing to who shows them.
    fn clean(self, keep_paths: bool) -> Subject {
        let json = serde_json::to_value(&self).expect("a subject can be written");
        let json = redact::json(harmless_texts(json), keep_paths);
        serde_json::from_value(json).expect("its texts are texts")
    }
}

fn harmless_texts(json: Json) -> Json {
    match json {
        Json::String(text) => Json::String(harmless(&text)),
        Json::Array(items) => items.into_iter().map(harmless_texts).collect(),
        Json::Object(fields) => {
            let one = |(key, value): (String, Json)| (harmless(&key), harmless_texts(value));
            Json::Object(fields.into_iter().map(one).collect())
        }
        other => other,
    }
}

/// What a subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The metrics that training logged.
    Run,
    /// The settings that it was started with.
    Config,
    /// The rows that it reads.
    Data,
}

impl Kind {
    /// The name in reports: `run`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Config => "config",
            Kind::Data => "data",
        }
    }
}

/// What was found out about one run, configuration or data set.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// What it is.
    pub kind: Kind,
    /// What people call it: its path, or its name in a file of several.
    pub name: String,
    /// The files that it was read from.
    pub files: Vec<PathBuf>,
    /// How they are written: `JSON lines`.
    pub format: String,
    /// The library that wrote it, or that it is for; `None` where that is not known. Of a
    /// configuration it is then `unknown`.
    pub library: Option<String>,
    /// The version of the library that is assumed for a configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_version: Option<String>,
    /// How many rows it has: of a configuration, how many settings.
    pub rows: u64,
    /// The first and the last step; `None` for all that is no run.
    pub steps: Option<[i64; 2]>,
    /// How often the run was started: 1, and once more where its steps go back.
    pub segments: u64,
    /// What all this comes to.
    pub verdict: Verdict,
    /// The settings that are known.
    pub settings: BTreeMap<String, Setting>,
    /// The metrics that are known.
    pub metrics: Vec<Metric>,
    /// Names of metrics, settings or columns that nothing is known about.
    pub unknown_names: Vec<String>,
    /// Every rule, in the order of the catalogue.
    pub rules: Vec<RuleReport>,
    /// What is wrong: by stage, severity and first step.
    pub findings: Vec<Finding>,
    /// What came of each stage of the pipeline.
    pub stages: BTreeMap<Stage, StageVerdict>,
    /// What a reader should know besides.
    pub warnings: Vec<String>,
}

/// What a diagnosis comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Something above a note.
    Findings,
    /// Nothing above a note, by the rules that could be judged.
    NothingFound,
    /// Too little to say anything.
    Insufficient,
}

/// A setting, and where it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its value.
    pub value: Json,
    /// `FILE:LINE`, `flag`, `default` or `metric`.
    pub origin: String,
}

/// A metric in figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its id: `reward.mean`.
    pub id: String,
    /// What the log calls it.
    pub name: String,
    /// How many finite values it has.
    pub points: u64,
    /// How many rows are without it.
    pub missing: u64,
    /// How many of its values are not finite.
    pub nonfinite: u64,
    /// How far a value may be from what was logged: half of the last digit.
    pub resolution: f64,
    /// The median of its beginning.
    pub first: Figure,
    /// The median of its middle.
    pub mid: Figure,
    /// The median of its end.
    pub last: Figure,
    /// Its smallest value.
    pub min: Figure,
    /// Its largest value.
    pub max: Figure,
    /// By how many standard errors the end is above the beginning.
    pub z: Figure,
    /// Kendall's τ of its blocks: 1 where it always rises.
    pub tau: Figure,
    /// At most 256 of its values, for a picture: step, smallest, mean, largest.
    pub spark: Vec<[Figure; 4]>,
}

/// What came of one rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleReport {
    /// Its id: `reward-declines`.
    pub id: String,
    /// The stage that it speaks about.
    pub stage: Stage,
    /// What came of it.
    pub status: RuleStatus,
    /// Why it says nothing.
    pub reason: Option<String>,
}

/// What came of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleStatus {
    /// There is a finding.
    Fires,
    /// There is nothing to say.
    Quiet,
    /// What it needs is not there, or too little of it.
    Insufficient,
    /// It does not speak about this kind of training.
    NotApplicable,
    /// It was left out on request; the reason is the user's.
    Skipped,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Probably harmful.
    Warning,
    /// Impossible numbers, or training that cannot learn what is meant.
    Error,
}

impl Severity {
    /// The name in reports: `warning`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// The stage of the pipeline at which to look.
    pub stage: Stage,
    /// What was found, in one sentence with its figures.
    pub found: String,
    /// The steps at which it was; `None` for all that is no run.
    pub steps: Option<[i64; 2]>,
    /// The line of the log, the setting or the row.
    pub location: Option<Location>,
    /// The figures, each with the limit that it broke.
    pub evidence: Vec<Evidence>,
    /// What it may come from, the likeliest first.
    pub causes: Vec<Cause>,
    /// What to do next, the most telling first.
    pub next: Vec<String>,
    /// The contracts and invariants to check.
    pub contracts: Vec<ContractHint>,
    /// The rule whose finding explains this one.
    pub explained_by: Option<String>,
    /// What it does not conclude.
    pub not_said: String,
    /// Where the rule comes from.
    pub source: String,
}

/// A figure that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is a figure of.
    #[serde(flatten)]
    pub of: Of,
    /// What was taken of it: `last`.
    pub statistic: String,
    /// What that is.
    pub value: Figure,
    /// What it was held against; `None` where it stands for itself.
    pub limit: Option<Figure>,
}

/// What a figure is one of; a key of its own each in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// A metric of a run.
    Metric(String),
    /// A setting of a configuration.
    Field(String),
    /// A column of a data set.
    Column(String),
}

impl Of {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Of::Metric(name) | Of::Field(name) | Of::Column(name) => name,
        }
    }
}

/// A number that JSON keeps: what is not finite is `"nan"`, `"inf"` or `"-inf"` there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Json", try_from = "Json")]
pub struct Figure(pub f64);

impl From<Figure> for Json {
    fn from(Figure(x): Figure) -> Json {
        match x {
            _ if x.is_nan() => "nan".into(),
            f64::INFINITY => "inf".into(),
            f64::NEG_INFINITY => "-inf".into(),
            x => x.into(),
        }
    }
}

impl TryFrom<Json> for Figure {
    type Error = String;

    fn try_from(value: Json) -> Result<Figure, String> {
        let number = value.as_f64().or_else(|| match value.as_str()? {
            "nan" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        });
        number.map(Figure).ok_or_else(|| format!("expected a number, found {value}"))
    }
}

/// What a finding may come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// In words.
    pub text: String,
    /// The setting that it is tied to.
    pub setting: Option<String>,
}

/// A contract to check, with the invariants that would tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractHint {
    /// Its id.
    pub contract: String,
    /// Some of its invariants; none for all of them.
    pub invariants: Vec<String>,
}

/// What came of one stage of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageVerdict {
    /// A rule of it fires above a note.
    Fires,
    /// Rules were judged, and none fires.
    Quiet,
    /// No rule could be judged.
    Unjudged,
}

impl Diagnosis {
    /// One diagnosis of several, each with the file that it was read from, in the order given.
    ///
    /// # Errors
    /// They are of different versions, or a subject is in two of them.
    ///
    /// # Panics
    /// If there are none.
    pub fn merge(diagnoses: Vec<(PathBuf, Diagnosis)>) -> Result<Diagnosis, Error> {
        let mut diagnoses = diagnoses.into_iter();
        let (first, mut all) = diagnoses.next().expect("there is one");
        for (path, diagnosis) in diagnoses {
            let (expected, found) = (&all.version, &diagnosis.version);
            if expected != found {
                let first = first.display();
                let why = format!("version: expected {expected} as in {first}, found {found}");
                return Err(Error::new(why).at(&path));
            }
            all.elapsed_ms = all.elapsed_ms.max(diagnosis.elapsed_ms);
            for subject in diagnosis.subjects {
                let mut known = all.subjects.iter();
                if known.any(|one| (one.kind, &one.name) == (subject.kind, &subject.name)) {
                    let why = format!("`{}` is given twice", subject.title());
                    return Err(Error::new(why).at(&path));
                }
                all.subjects.push(subject);
            }
        }
        Ok(all)
    }
}
