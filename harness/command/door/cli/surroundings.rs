//! `shakedown check-run`, `check-config` and `check-data`: what surrounds the components.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::Value as Json;

use super::files::{Form, ReportFiles, Told};
use super::{Done, gold, manifest_here};
#[cfg(feature = "junit")]
use crate::render::subjects::junit;
use crate::render::subjects::{github, html, sarif, text};
use shakedown_contracts::REGISTRY;
use shakedown_core::value::error::{Error, unknown};
use shakedown_core::value::redact::secrets;
use shakedown_core::value::text::{for_shell, harmless};
use shakedown_engine::files::manifest::Manifest;
use shakedown_engine::report::ExitCode;
use shakedown_engine::report::text::Paint;
use shakedown_lint::datasets::{self, Reading};
use shakedown_lint::report::{Diagnosis, Finding, Severity, Subject};
use shakedown_lint::rules::{About, Asked, Rule};
use shakedown_lint::runs::{self, Run};
use shakedown_lint::settings::formats::Given;
use shakedown_lint::settings::{self, Settings};

/// What is asked of all of them alike.
#[derive(Args)]
pub(super) struct RuleArguments {
    /// Only these rules
    #[arg(long, value_name = "RULE")]
    only: Vec<String>,
    /// Not this rule, for a reason that the report says
    #[arg(long, value_name = "RULE=REASON")]
    skip: Vec<String>,
    /// Fail on findings of this severity and worse
    #[arg(long, value_name = "SEVERITY", default_value = "warning")]
    fail_on: FailOn,
    /// Keep whole paths, hosts and names of users in the reports; secrets are never kept
    #[arg(long)]
    paths: bool,
    #[command(flatten)]
    files: ReportFiles,
}

/// The severity at which a finding fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    /// Impossible numbers, or training that cannot learn what is meant
    Error,
    /// Probably harmful
    Warning,
    /// Good to know
    Note,
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Severity {
        match fail_on {
            FailOn::Error => Severity::Error,
            FailOn::Warning => Severity::Warning,
            FailOn::Note => Severity::Note,
        }
    }
}

#[derive(Args)]
pub(super) struct RunArguments {
    /// Logs, or folders of runs; the working folder where none is named
    #[arg(value_name = "FILE|DIR")]
    logs: Vec<PathBuf>,
    /// What the run was started with
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// What takes the fields of a JSON file that is a configuration: `GRPOConfig`
    #[arg(long, hide = true)]
    call: Option<String>,
    /// The components of the pipeline, so that findings name commands that check them
    #[arg(long, short, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// What a metric is called in the log: `--set reward.mean=my/score`
    #[arg(long, value_name = "METRIC=NAME")]
    set: Vec<String>,
    /// What the report calls it
    #[arg(long, hide = true)]
    name: Option<String>,
    #[command(flatten)]
    rules: RuleArguments,
}

#[derive(Args)]
pub(super) struct ConfigArguments {
    /// Configurations: YAML, JSON, shell or Python scripts
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The value of a field, instead of the one in the file
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// How many processes train, where the file does not say
    #[arg(long, value_name = "N")]
    processes: Option<u64>,
    /// The library that it is for: trl, verl, OpenRLHF, NeMo-RL, slime, or unknown
    #[arg(long, value_name = "NAME")]
    library: Option<String>,
    /// What takes the fields of a JSON file: `GRPOConfig`
    #[arg(long, hide = true)]
    call: Option<String>,
    /// How many tokens the model can take, where the file does not say
    #[arg(long, value_name = "N")]
    context: Option<u64>,
    /// What the report calls it
    #[arg(long, hide = true)]
    name: Option<String>,
    #[command(flatten)]
    rules: RuleArguments,
}

#[derive(Args)]
pub(super) struct DataArguments {
    /// Data sets: JSON lines or parquet
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The data set on which training is judged
    #[arg(long, value_name = "FILE")]
    eval: Option<PathBuf>,
    /// The configuration that trains on it
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// What takes the fields of a JSON file that is a configuration: `GRPOConfig`
    #[arg(long, hide = true)]
    call: Option<String>,
    /// The components of the pipeline: gold answers are then given to its reward functions
    #[arg(long, short, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Count lengths in tokens of this tokenizer
    #[arg(long, value_name = "tokenizer.json")]
    tokenizer: Option<PathBuf>,
    /// Show the beginning of the texts that findings are about
    #[arg(long)]
    show_text: bool,
    /// What the report calls it
    #[arg(long, hide = true)]
    name: Option<String>,
    #[command(flatten)]
    rules: RuleArguments,
}

/// `NAME=VALUE` in two.
fn pairs(given: &[String], form: &str) -> Result<Vec<(String, String)>, Error> {
    let split = |text: &String| {
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty())?;
        Some((name.to_owned(), value.to_owned()))
    };
    let wrong = |text: &String| Error::new(format!("expected {form}, found `{text}`"));
    given.iter().map(|text| split(text).ok_or_else(|| wrong(text))).collect()
}

impl RuleArguments {
    /// Which rules are asked, all of which must be among `known`.
    fn asked(&self, known: &[&str]) -> Result<Asked, Error> {
        let skip = pairs(&self.skip, "RULE=REASON")?;
        let named = self.only.iter().chain(skip.iter().map(|(rule, _)| rule));
        for rule in named {
            if !known.contains(&rule.as_str()) {
                return Err(Error::new(unknown("rule", rule, known)));
            }
        }
        Ok(Asked { only: self.only.clone(), skip })
    }

    /// Ends a run with what was found out.
    fn conclude(&self, started: Instant, subjects: Vec<Subject>) -> Done {
        let diagnosis = Diagnosis::new(started, subjects, self.paths);
        self.files.tell(&Judged { diagnosis: &diagnosis, fail_on: self.fail_on.into() })
    }
}

/// A diagnosis, and what fails.
pub(super) struct Judged<'a> {
    pub(super) diagnosis: &'a Diagnosis,
    pub(super) fail_on: Severity,
}

impl Told for Judged<'_> {
    fn text(&self, to: &mut dyn Write, paint: Paint, verbose: bool) -> io::Result<()> {
        text::write(to, self.diagnosis, paint, verbose)
    }

    fn annotations(&self) -> String {
        github::annotations(self.diagnosis)
    }

    fn form(&self, form: Form) -> String {
        match form {
            Form::Json => self.diagnosis.json(),
            #[cfg(feature = "junit")]
            Form::Junit => junit::xml(self.diagnosis, self.fail_on),
            Form::Sarif => sarif::json(self.diagnosis),
            Form::Html => html::page(self.diagnosis),
        }
    }

    fn exit_code(&self) -> ExitCode {
        self.diagnosis.exit_code(self.fail_on)
    }
}

/// The rules about runs, configurations and data sets, each list with its name.
pub(super) fn rules() -> [(&'static str, Vec<About>); 3] {
    let runs = runs::rules::all().iter().map(Rule::about).collect();
    let config = settings::rules::all().iter().map(Rule::about).collect();
    let data = datasets::rules::all().iter().map(Rule::about).collect();
    [("runs", runs), ("config", config), ("data", data)]
}

fn ids<S: ?Sized>(rules: &[Rule<S>]) -> Vec<&'static str> {
    rules.iter().map(|rule| rule.id).collect()
}

pub(super) fn check_run(arguments: &RunArguments) -> Done {
    let started = Instant::now();
    let RunArguments { logs, config, call, manifest, set, name, rules } = arguments;
    let asked = rules.asked(&ids(runs::rules::all()))?;
    let set = pairs(set, "METRIC=NAME")?;
    let own_names = set.into_iter().map(|(metric, name)| (name, metric)).collect();
    let manifest = declared(manifest.as_deref())?;
    let here = [PathBuf::from(".")];
    let logs = if logs.is_empty() { &here[..] } else { logs };
    let given = configuration(config, call.as_deref())?;
    let mut subjects = Vec::new();
    for log in logs {
        for mut run in runs::formats::read(log, &own_names)? {
            run.settings = beside(&mut run, given.as_ref());
            let mut subject = called(run.judge(&asked), name.as_deref());
            name_commands(&mut subject, manifest.as_ref());
            subjects.push(subject);
        }
    }
    rules.conclude(started, subjects)
}

/// The configuration that files hold; `None` where there are none.
fn configuration(files: &[PathBuf], call: Option<&str>) -> Result<Option<Settings>, Error> {
    match files.is_empty() {
        true => Ok(None),
        false => {
            let given = Given { call, ..Given::default() };
            settings::formats::read_as(files, given, None, None, &[]).map(Some)
        }
    }
}

/// The manifest that is named, or else that of the working folder. If nobody named it, it may be
/// wrong.
fn declared(named: Option<&Path>) -> Result<Option<(Manifest, PathBuf)>, Error> {
    let with_path = |path: &Path| Ok((Manifest::read(&REGISTRY, path)?, path.to_owned()));
    match (named, manifest_here()) {
        (Some(named), _) => with_path(named).map(Some),
        (None, Some(here)) => match with_path(&here) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(error) => {
                eprintln!("warning: {}", secrets(&harmless(&error.to_string())));
                Ok(None)
            }
        },
        (None, None) => Ok(None),
    }
}

/// The settings of a run: those given, else those of the files beside its log. What cannot be read
/// of the latter is a warning: nobody named them.
fn beside(run: &mut Run, given: Option<&Settings>) -> Settings {
    if let Some(given) = given {
        return given.clone();
    }
    let read = match (&run.config_files[..], run.config.is_empty()) {
        ([], true) => return Settings::default(),
        ([], false) => settings::formats::from_json(&Json::Object(run.config.clone()), None),
        (files, _) => settings::formats::read(files, None, None, &[]),
    };
    read.unwrap_or_else(|error| {
        run.warnings.push(format!("settings are not known: {error}"));
        Settings::default()
    })
}

/// A subject under a name of its own: the file that it was read from is not the user's.
fn called(subject: Subject, name: Option<&str>) -> Subject {
    let Some(name) = name else { return subject };
    let findings = subject.findings.into_iter();
    let findings = findings.map(|finding| Finding { location: None, ..finding }).collect();
    Subject { name: name.to_owned(), files: Vec::new(), findings, ..subject }
}

/// Has the steps of findings name the manifest, and say where it has nothing to check.
fn name_commands(subject: &mut Subject, manifest: Option<&(Manifest, PathBuf)>) {
    for finding in &mut subject.findings {
        for next in &mut finding.next {
            let Some(stage) = next.strip_prefix("shakedown check --stage ") else { continue };
            let has = |manifest: &Manifest| {
                manifest.components.iter().any(|one| one.contract.stage().name() == stage)
            };
            *next = match manifest {
                Some((manifest, path)) if has(manifest) => {
                    format!(
                        "shakedown check {} --stage {stage}",
                        for_shell(&path.to_string_lossy())
                    )
                }
                _ => format!("{next}   (no component of that stage is declared: shakedown init)"),
            };
        }
    }
}

pub(super) fn check_config(arguments: &ConfigArguments) -> Done {
    let started = Instant::now();
    let ConfigArguments { files, set, processes, library, call, context, name, rules } = arguments;
    let asked = rules.asked(&ids(settings::rules::all()))?;
    let set = pairs(set, "FIELD=VALUE")?;
    let given = Given { library: library.as_deref(), call: call.as_deref() };
    let judge = |file: &PathBuf| -> Result<Subject, Error> {
        let file = std::slice::from_ref(file);
        let settings = settings::formats::read_as(file, given, *processes, *context, &set)?;
        let mut subject = called(settings.judge(&asked), name.as_deref());
        name_commands(&mut subject, None);
        Ok(subject)
    };
    let subjects = files.iter().map(judge).collect::<Result<Vec<_>, Error>>()?;
    rules.conclude(started, subjects)
}

pub(super) fn check_data(arguments: &DataArguments) -> Done {
    let started = Instant::now();
    let DataArguments { files, eval, config, call, manifest, tokenizer, show_text, name, rules } =
        arguments;
    let asked = rules.asked(&ids(datasets::rules::all()))?;
    let settings = configuration(config, call.as_deref())?;
    let count_tokens = tokenizer.as_deref().map(token_counter).transpose()?;
    let reading = Reading {
        eval: eval.as_deref(),
        settings: settings.as_ref(),
        count_tokens: count_tokens.as_deref(),
        shows_text: *show_text,
        ..Reading::default()
    };
    let mut data = datasets::read(files, &reading)?;
    if let Some(manifest) = manifest {
        gold::ask_rewards(&mut data, &Manifest::read(&REGISTRY, manifest)?)?;
    }
    let mut subject = called(data.judge(&asked), name.as_deref());
    name_commands(&mut subject, None);
    rules.conclude(started, vec![subject])
}

/// Counts the tokens of a text, special ones left out.
type TokenCounter = Box<dyn Fn(&str) -> usize>;

#[cfg(feature = "tokenizer")]
fn token_counter(path: &Path) -> Result<TokenCounter, Error> {
    let tokenizer = tokenizers::Tokenizer::from_file(path);
    let tokenizer = tokenizer.map_err(|error| Error::new(error.to_string()).at(path))?;
    Ok(Box::new(move |text| tokenizer.encode(text, false).map_or(0, |encoding| encoding.len())))
}

#[cfg(not(feature = "tokenizer"))]
fn token_counter(path: &Path) -> Result<TokenCounter, Error> {
    let why = "this shakedown was built without the feature `tokenizer`";
    Err(Error::new(why).at(path))
}
