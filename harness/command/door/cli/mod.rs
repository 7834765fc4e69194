//! The command.

mod adopt;
mod cases;
mod catalogue;
mod check;
mod check_batch;
mod check_trainer;
mod demo;
mod drive;
mod explain;
mod files;
#[cfg(feature = "fuzz")]
mod fuzz;
mod gold;
mod help;
#[cfg(feature = "init")]
mod init;
mod merge;
mod read_report;
mod replay;
mod surroundings;
mod values;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use files::ReportFiles;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::error::{Error, unknown};
use shakedown_core::value::place::Place;
use shakedown_core::value::redact::secrets;
use shakedown_core::value::text::harmless;
use shakedown_engine::report;
use shakedown_engine::report::Shard;
use shakedown_engine::report::text::Paint;

/// The manifest that is meant where none is named.
const MANIFEST: &str = "shakedown.yaml";

/// The manifest of the working folder, where it has one.
fn manifest_here() -> Option<PathBuf> {
    Some(PathBuf::from(MANIFEST)).filter(|path| path.is_file())
}

/// Property-based testing for RL post-training pipelines.
///
/// Attacks decoders, reward functions, advantages, log-probabilities and losses with adversarial
/// inputs, checks what must hold, and says which known bug a failure behaves like.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(after_help = "\
Exit codes: 0 all hold (on the cases that each line names), 1 findings, 2 could not run,
3 nothing was checked, 130 interrupted before anything was found.
Environment: SHAKEDOWN_PLACES overrides all places; NO_COLOR turns colours off.")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Find a planted bug, in seconds, to see what a finding looks like
    Demo {
        /// What the bug is in: advantage, loss, reward, trainer
        #[arg(value_name = "WHERE")]
        which: Option<String>,
    },
    /// Check every invariant of every component of a manifest
    Check(CheckArguments),
    /// Check a recorded batch of a training step
    CheckBatch(CheckBatchArguments),
    /// Check a whole trainer as it is: trl.GRPOTrainer, or another one of TRL
    CheckTrainer(CheckTrainerArguments),
    /// Say what is wrong with a run, by the metrics that it logged
    #[command(visible_alias = "diagnose")]
    CheckRun(surroundings::RunArguments),
    /// Say what is wrong with a configuration, before it is used
    #[command(visible_alias = "lint")]
    CheckConfig(surroundings::ConfigArguments),
    /// Say what is wrong with a data set of prompts, answers or preferences
    CheckData(surroundings::DataArguments),
    /// Search for cases that break an invariant, guided by what the components do
    #[cfg(feature = "fuzz")]
    Fuzz(fuzz::FuzzArguments),
    #[cfg(not(feature = "fuzz"))]
    #[command(hide = true)]
    Fuzz(Anything),
    /// Say of kept cases whether each is fixed, still failing, excused or stale
    Replay {
        /// Case files, or folders of them
        #[arg(required = true, value_name = "CASE.yaml|DIR")]
        cases: Vec<PathBuf>,
        /// Where the components are, `shakedown.yaml` where it is here; without one the builtin
        /// reference is called
        #[arg(long, short)]
        manifest: Option<PathBuf>,
        /// Remove the cases in `found` folders that are fixed, by what they were found on
        #[arg(long)]
        prune: bool,
        /// Say of each case what the other invariants say of it that its bug broke
        #[arg(long, short)]
        verbose: bool,
    },
    /// Make a failing case as small as it gets, and write it back
    Shrink {
        /// A case file
        #[arg(value_name = "CASE.yaml")]
        case: PathBuf,
        /// Where the component is, `shakedown.yaml` where it is here; without one the builtin
        /// reference is called
        #[arg(long, short)]
        manifest: Option<PathBuf>,
        /// Where to write the small case, instead of over the old one
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Keep a finding as a regression, with a reason
    Adopt {
        /// A case file in a `found` folder
        #[arg(value_name = "CASE.yaml")]
        case: PathBuf,
        /// Why it is kept
        #[arg(long)]
        why: String,
        /// The bug report
        #[arg(long)]
        link: Option<String>,
        /// A name for the file, instead of its own
        #[arg(long)]
        name: Option<String>,
        /// The corpora folder, if not the one that the case is in, or is beside
        #[arg(long, value_name = "DIR")]
        corpora: Option<PathBuf>,
    },
    /// List the contracts, what one of them has, or the rules about runs, config, data
    List {
        /// A contract, or one of: runs, config, data
        contract: Option<String>,
        /// List the components of a manifest instead, with their contracts and places
        #[arg(long, short, value_name = "FILE", conflicts_with = "contract")]
        manifest: Option<PathBuf>,
        /// Print JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Check a component that the process which started this one runs, for other programs
    #[command(hide = true)]
    Drive,
    /// Print the cases on which components of a contract are checked
    Cases(CasesArguments),
    /// Print the JSON Schema of shakedown.yaml, for editors
    Schema,
    /// Explain a contract, invariant, fault, option, class of inputs, pitfall or rule
    Explain {
        /// CONTRACT, CONTRACT/ID, RULE, or the ID alone
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Write tests, a suite or a manifest, and CI jobs, into a training repository
    #[cfg(feature = "init")]
    Init(init::Arguments),
    #[cfg(not(feature = "init"))]
    #[command(hide = true)]
    Init(Anything),
    /// Put JSON reports together: those of all shards make the report of the whole run
    MergeReports {
        /// JSON reports: all shards of a run in any order, or runs of different components
        #[arg(required = true, value_name = "REPORT.json")]
        reports: Vec<PathBuf>,
        #[command(flatten)]
        files: ReportFiles,
    },
    /// Show a verb or a page: manifest settings cookbook trainers runs batches ci rust
    Help {
        /// A verb, or a page
        topic: Option<String>,
    },
}

#[derive(Args)]
struct CheckArguments {
    /// The components and what is declared about them
    #[arg(default_value = MANIFEST)]
    manifest: PathBuf,
    /// Only components, or COMPONENT/INVARIANT, that contain this text
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,
    /// Only components of exactly this name
    #[arg(long, value_name = "NAME")]
    component: Vec<String>,
    /// Only components of this stage of the pipeline: reward, decoding, advantage,
    /// log-probability, loss, update, step
    #[arg(long, value_name = "STAGE", value_parser = stage)]
    stage: Option<Stage>,
    /// Only components and places that failed when they were checked last
    #[arg(long)]
    last_failed: bool,
    /// Random cases for each component, after the corners
    #[arg(long, value_name = "N", default_value_t = shakedown_engine::subject::DEFAULT_CASES)]
    #[arg(value_parser = whole::<u64>, allow_negative_numbers = true)]
    cases: u64,
    /// Stop loading a component after this time, checking it as well, and shrinking and diagnosing
    /// after as long again: 500ms, 30s, 5m. Regressions always run
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// The seed of the random cases
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = whole::<u64>, allow_negative_numbers = true)]
    seed: u64,
    /// Check at these places instead: cpu/f32,cuda/bf16
    #[arg(long, value_name = "PLACES", value_parser = places)]
    places: Option<Places>,
    /// Components checked at a time; 0 for one a core
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = whole::<usize>, allow_negative_numbers = true)]
    jobs: usize,
    /// Also print each component's outputs on a few small inputs beside the oracle's
    #[arg(long)]
    values: bool,
    /// Show what components in processes of their own print, on standard error
    #[arg(long)]
    show_output: bool,
    /// Check one part of N, the components at their places dealt out in turn: 2/8
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Whether the others are the first component with one setting changed: they are checked where
    /// it passes, on fewer cases.
    #[arg(skip)]
    sweep: bool,
    #[command(flatten)]
    files: ReportFiles,
}

#[derive(Args)]
struct CheckBatchArguments {
    /// The inputs, and what came back for them, under the contract's names
    #[arg(value_name = "FILE.safetensors")]
    file: PathBuf,
    /// The contract
    #[arg(long, value_name = "ID")]
    contract: String,
    /// Also call its components of this contract on the batch
    #[arg(long, short)]
    manifest: Option<PathBuf>,
    /// Only components, or COMPONENT/INVARIANT, that contain this text
    #[arg(long, value_name = "PATTERN", requires = "manifest")]
    only: Vec<String>,
    /// An option, instead of the one in the file or in the manifest. Recorded outputs too have
    /// those of the component in the manifest
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// Check at this place: cpu/f32. For recorded outputs, their own format is the default
    #[arg(long, value_name = "PLACE")]
    place: Option<Place>,
    #[command(flatten)]
    files: ReportFiles,
}

#[derive(Args)]
struct CheckTrainerArguments {
    /// The trainer: trl.GRPOTrainer, trl.RLOOTrainer, trl.DPOTrainer, trl.SFTTrainer,
    /// trl.RewardTrainer, trl.KTOTrainer, trl.CPOTrainer, trl.ORPOTrainer, or MODULE:CLASS or
    /// FILE.py:CLASS of one made of them
    trainer: String,
    /// Its configuration: YAML, JSON, or Python with one called config, args or training_args.
    /// Without one the library's defaults are declared
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the check passes, check again with each setting changed, one after the other: some
    /// must not matter, the others must have their effect
    #[arg(long)]
    sweep: bool,
    /// Where to write the manifest by which the check can be repeated and its findings replayed
    /// [default: shakedown-TRAINER.yaml]
    #[arg(long, short, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Random cases, after the corners
    #[arg(long, value_name = "N", default_value_t = 48)]
    #[arg(value_parser = whole::<u64>, allow_negative_numbers = true)]
    cases: u64,
    /// Stop loading after this time, checking as well, and shrinking and diagnosing after as long
    /// again: 500ms, 30s, 5m. Regressions always run
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// The seed of the random cases
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = whole::<u64>, allow_negative_numbers = true)]
    seed: u64,
    /// Check at these places instead: cpu/f32,cuda/f32
    #[arg(long, value_name = "PLACES", value_parser = places)]
    places: Option<Places>,
    /// Show what the trainer prints, on standard error
    #[arg(long)]
    show_output: bool,
    #[command(flatten)]
    files: ReportFiles,
}

#[derive(Args)]
struct CasesArguments {
    /// The contract
    contract: String,
    /// Random cases, after the corners
    #[arg(long, value_name = "N", default_value_t = shakedown_engine::subject::DEFAULT_CASES)]
    #[arg(value_parser = whole::<u64>, allow_negative_numbers = true)]
    cases: u64,
    /// The seed of the random cases
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = whole::<u64>, allow_negative_numbers = true)]
    seed: u64,
    /// The place whose dtype the cases are rounded to
    #[arg(long, value_name = "PLACE", default_value_t = Place::CPU_F32)]
    place: Place,
    /// An option, instead of its default; the value in YAML
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// A list in one argument; clap takes a `Vec` for repeated arguments.
#[derive(Clone, Debug)]
struct Places(Vec<Place>);

fn places(text: &str) -> Result<Places, Error> {
    Place::list(text).map(Places)
}

fn stage(text: &str) -> Result<Stage, String> {
    let names: Vec<&str> = Stage::ALL.iter().map(|stage| stage.name()).collect();
    let found = Stage::ALL.iter().find(|stage| stage.name() == text);
    found.copied().ok_or_else(|| unknown("stage", text, &names))
}

fn whole<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "expected a whole number ≥ 0")
}

fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time such as 500ms, 30s, 5m or 1h".to_owned()),
    };
    number
        .parse::<f64>()
        .ok()
        .and_then(|number| Duration::try_from_secs_f64(number * seconds).ok())
        .ok_or_else(|| "expected a time such as 500ms, 30s, 5m or 1h".to_owned())
}

/// Whatever stands behind a verb that was left out.
#[cfg(not(all(feature = "fuzz", feature = "init")))]
#[derive(Args)]
struct Anything {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _anything: Vec<String>,
}

/// A verb that this build does not have.
#[cfg(not(all(feature = "fuzz", feature = "init")))]
fn left_out(verb: &str) -> Done {
    let how = format!(
        "`cargo install … --features {verb}`, or `cargo run --features {verb} -- {verb} …`"
    );
    Err(Error::new(format!("this shakedown was built without `{verb}`: {how}")).into())
}

/// Standard output, colours taken out where it is no terminal or `NO_COLOR` is set. A reader that
/// leaves, as `head` does, stops nothing.
fn output() -> (Box<dyn Write>, Paint) {
    painted(anstream::stdout())
}

/// Standard error, in the same way.
fn errors() -> (Box<dyn Write>, Paint) {
    painted(anstream::stderr())
}

fn painted<S>(to: anstream::AutoStream<S>) -> (Box<dyn Write>, Paint)
where
    S: anstream::stream::RawStream + anstream::stream::AsLockedWrite + 'static,
{
    let colours = to.current_choice() != anstream::ColorChoice::Never;
    (Box::new(Heedless(to)), if colours { Paint::colours() } else { Paint::default() })
}

/// A writer to which it is all the same whether anybody reads.
struct Heedless<W>(W);

impl<W: Write> Write for Heedless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.verb {
        Verb::Demo { which } => demo::run(which.as_deref()),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::CheckRun(arguments) => surroundings::check_run(&arguments),
        Verb::CheckConfig(arguments) => surroundings::check_config(&arguments),
        Verb::CheckData(arguments) => surroundings::check_data(&arguments),
        Verb::MergeReports { reports, files } => merge::run(&reports, &files),
        #[cfg(feature = "fuzz")]
        Verb::Fuzz(arguments) => fuzz::run(&arguments),
        #[cfg(not(feature = "fuzz"))]
        Verb::Fuzz(_) => left_out("fuzz"),
        Verb::Help { topic } => help::run(topic.as_deref()),
        Verb::Drive => drive::run(),
        Verb::CheckBatch(arguments) => check_batch::run(&arguments),
        Verb::CheckTrainer(arguments) => check_trainer::run(arguments),
        Verb::List { manifest: Some(manifest), json, .. } => catalogue::components(&manifest, json),
        Verb::List { contract, json, .. } => explain::list(contract.as_deref(), json),
        Verb::Cases(arguments) => cases::run(&arguments),
        Verb::Schema => catalogue::schema(),
        Verb::Explain { ids } => explain::explain(&ids),
        #[cfg(feature = "init")]
        Verb::Init(arguments) => init::run(&arguments),
        #[cfg(not(feature = "init"))]
        Verb::Init(_) => left_out("init"),
        Verb::Replay { cases, manifest, prune, verbose } => {
            replay::run(&cases, manifest.or_else(manifest_here).as_deref(), prune, verbose)
        }
        Verb::Shrink { case, manifest, output } => {
            let manifest = manifest.or_else(manifest_here);
            replay::shrink(&case, manifest.as_deref(), output.as_deref())
        }
        Verb::Adopt { case, why, link, name, corpora } => {
            adopt::run(&case, &why, link.as_deref(), name.as_deref(), corpora.as_deref())
        }
    };
    match result {
        Ok(code) => code.into(),
        Err(Stopped::Error(error)) => {
            eprintln!("error: {}", secrets(&harmless(&error.to_string())));
            report::ExitCode::CouldNotRun.into()
        }
        Err(Stopped::Output(error)) => {
            eprintln!("error: cannot write the output: {error}");
            report::ExitCode::CouldNotRun.into()
        }
    }
}

/// Why a verb stopped.
enum Stopped {
    Error(Error),
    Output(io::Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped::Error(error)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Stopped::Output(error)
    }
}

type Done = Result<report::ExitCode, Stopped>;

fn is_terminal() -> bool {
    io::stderr().is_terminal()
}
