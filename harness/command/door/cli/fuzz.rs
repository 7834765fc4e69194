//! `shakedown fuzz`: coverage-guided cases for hours. Each job is a process of its own, because
//! libFuzzer never gives the control back and a component in the same process may take it down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::TempDir;

use super::check::stop_when_asked;
use super::files::ReportFiles;
use super::{Done, MANIFEST, Places, duration, is_terminal, manifest_here, output, places, whole};
use crate::door::fuzz::engine::{self, Next};
use crate::door::fuzz::job::{self, Limits};
use crate::door::fuzz::session::{AtOnePlace, Session, kept, reason};
use shakedown_contracts::REGISTRY;
use shakedown_core::contract::cause::Cause as Way;
use shakedown_core::contract::coverage;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::generate::measure::Measure;
use shakedown_core::laws::NOT_OF_OUTPUTS;
use shakedown_core::value::error::{Error, unknown};
use shakedown_core::value::place::{Device, Dtype, Place};
use shakedown_core::value::text::count;
use shakedown_engine::check::blank_report;
use shakedown_engine::files::atomic::write_atomically;
use shakedown_engine::files::case_file::CaseFile;
use shakedown_engine::files::corpora::{found_folder, yaml_files};
use shakedown_engine::files::manifest::{Declared, Manifest};
use shakedown_engine::host::process;
use shakedown_engine::interrupt;
use shakedown_engine::report::bugs::prominence;
use shakedown_engine::report::{
    ComponentReport, ExitCode, Finding, InvariantStatus, Report, Status,
};
use shakedown_engine::subject::Subject;

/// Set for the jobs: where a job leaves what it says.
const RESULT: &str = "SHAKEDOWN_FUZZ_RESULT";

#[derive(Args)]
pub(super) struct FuzzArguments {
    /// Components of the manifest, or contracts: all of their components. Without a manifest a
    /// contract is its builtin reference, and CONTRACT/fault/ID a planted bug
    #[arg(value_name = "CONTRACT|COMPONENT")]
    what: Vec<String>,
    /// Where the components are [default: shakedown.yaml where there is one]
    #[arg(long, short)]
    manifest: Option<PathBuf>,
    /// How long to fuzz each component: 30s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1m")]
    time: Duration,
    /// Stop each job after so many inputs, whatever the time
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true)]
    runs: Option<u64>,
    /// Processes at a time, on the same corpus; 0 for one a core
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole::<usize>, allow_negative_numbers = true)]
    jobs: usize,
    /// The folder of inputs to begin with and to add to [default: CORPORA/CONTRACT/seeds]
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// Pass where all bugs are in the report of an earlier run: they are listed as warnings
    #[arg(long)]
    allow_known: bool,
    /// Instead of fuzzing, keep the smallest inputs of the corpus that do all that it does
    #[arg(long)]
    minimise: bool,
    /// The same, with the inputs of another corpus besides
    #[arg(long, value_name = "DIR")]
    merge: Vec<PathBuf>,
    /// The seed of libFuzzer [default: from the clock]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Fuzz at these places instead: cpu/f32,cuda/bf16
    #[arg(long, value_name = "PLACES", value_parser = places)]
    places: Option<Places>,
    #[command(flatten)]
    files: ReportFiles,
}

/// What is said of a bug that an earlier run reported.
const REPORTED: &str = "an earlier run reported this bug: fix it, or declare it under `known`";

/// What a job says of each place.
type JobResult = Vec<AtOnePlace>;

/// What one component is fuzzed with.
struct Task<'a> {
    arguments: &'a FuzzArguments,
    target: Target<'a>,
    contract: &'static dyn AnyContract,
    places: Vec<Place>,
    /// Where findings go.
    corpora: PathBuf,
    corpus: PathBuf,
    seed: u64,
}

enum Target<'a> {
    Declared(&'a Manifest, &'a Declared),
    /// `CONTRACT/reference` or `CONTRACT/fault/ID`.
    Builtin(String),
}

pub(super) fn run(arguments: &FuzzArguments) -> Done {
    let started = Instant::now();
    let path = arguments.manifest.clone().or_else(manifest_here);
    let manifest = path.as_deref().map(|path| Manifest::read(&REGISTRY, path)).transpose()?;
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    // libFuzzer takes 0 for the clock too.
    let seed = arguments.seed.unwrap_or_else(clock).clamp(1, u32::MAX.into());
    let tasks = tasks(arguments, manifest.as_ref(), seed)?;
    if let Some(result) = std::env::var_os(RESULT) {
        let [task] = &tasks[..] else {
            return Err(Error::new("a job fuzzes one component").into());
        };
        return run_as_job(task, result.into());
    }
    if arguments.minimise || !arguments.merge.is_empty() {
        for task in &tasks {
            writeln!(output().0, "{}", minimise(task)?)?;
        }
        return Ok(ExitCode::AllHold);
    }
    remove_left_behind(&std::env::temp_dir());
    let mut components = Vec::new();
    let mut said = Vec::new();
    stop_when_asked(end_jobs);
    for task in &tasks {
        if interrupt::is_asked() {
            break;
        }
        let (reports, keys) = fuzz(task)?;
        components.extend(reports);
        said.push((task, keys));
    }
    let report = Report::new(seed, None, started, components);
    let code = arguments.files.conclude(&report, &[])?;
    // Not before every report is written: what nobody was told is no known finding.
    for (task, keys) in said {
        mark_as_reported(task, &keys)?;
    }
    Ok(code)
}

/// The process ids of the jobs that run.
static JOBS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Has all jobs end with what they found.
fn end_jobs() {
    #[cfg(unix)]
    for job in JOBS.lock().iter().flat_map(|jobs| jobs.iter()) {
        if let Some(job) = rustix::process::Pid::from_raw(job.cast_signed()) {
            let _ = rustix::process::kill_process(job, rustix::process::Signal::TERM);
        }
    }
}

/// Says in the case files of some findings that a report has them.
fn mark_as_reported(task: &Task<'_>, keys: &BTreeSet<Key>) -> Result<(), Error> {
    for (path, file) in kept(task.contract, &task.corpora, task.name()) {
        if !file.reported && !keys.is_disjoint(&Key::all_of_file(&file)) {
            CaseFile { reported: true, ..file }.write(&path)?;
        }
    }
    Ok(())
}

/// What is to be fuzzed, in the order of the manifest.
fn tasks<'a>(
    arguments: &'a FuzzArguments,
    manifest: Option<&'a Manifest>,
    seed: u64,
) -> Result<Vec<Task<'a>>, Error> {
    let asked = match &arguments.places {
        Some(places) => Some(places.0.clone()),
        None => Place::from_env()?,
    };
    let corpus = |corpora: &Path, contract: &str| {
        arguments.corpus.clone().unwrap_or_else(|| corpora.join(contract).join("seeds"))
    };
    let mut tasks = Vec::new();
    let is_name = |name: &String| {
        manifest.is_some_and(|manifest| manifest.components.iter().any(|one| one.name == *name))
    };
    // A builtin component has a slash in its name; without a manifest a contract's name is its own.
    let is_builtin = |name: &&String| manifest.is_none() || (name.contains('/') && !is_name(name));
    let (builtin, declared): (Vec<&String>, Vec<&String>) =
        arguments.what.iter().partition(is_builtin);
    if let (Some(manifest), true) = (manifest, builtin.is_empty() || !declared.is_empty()) {
        let components = &manifest.components;
        for name in &declared {
            if !components.iter().any(|one| **name == one.name || *name == one.contract.id()) {
                let mut known: Vec<&str> = components.iter().map(|one| &*one.name).collect();
                known.extend(components.iter().map(|one| one.contract.id()));
                return Err(Error::new(unknown("component", name, &known)).at(manifest.path()));
            }
        }
        let asked_for = |one: &&Declared| {
            // A component may have the name of a contract: then it alone is meant.
            let named = |name: &&String| {
                **name == one.name || (*name == one.contract.id() && !is_name(name))
            };
            declared.is_empty() || declared.iter().any(named)
        };
        tasks.extend(components.iter().filter(asked_for).map(|declared| Task {
            arguments,
            target: Target::Declared(manifest, declared),
            contract: declared.contract,
            places: declared.places(asked.as_deref()),
            corpora: manifest.corpora().to_owned(),
            corpus: corpus(manifest.corpora(), declared.contract.id()),
            seed,
        }));
    } else if builtin.is_empty() {
        let why = format!("there is no {MANIFEST} here: name a contract, or add --manifest");
        return Err(Error::new(why));
    }
    for name in builtin {
        let id = name.split('/').next().unwrap_or(name);
        let contract = REGISTRY.get(id).map_err(Error::new)?;
        let everywhere = Dtype::ALL.map(|(dtype, _)| Place { device: Device::Cpu, dtype });
        let corpora = manifest.map_or(Path::new("corpora"), Manifest::corpora);
        tasks.push(Task {
            arguments,
            target: Target::Builtin(match name.contains('/') {
                true => name.clone(),
                false => format!("{name}/reference"),
            }),
            contract,
            places: asked.clone().unwrap_or(everywhere.to_vec()),
            corpora: corpora.to_owned(),
            corpus: corpus(corpora, contract.id()),
            seed,
        });
    }
    if arguments.corpus.is_some() && tasks.len() > 1 {
        return Err(Error::new("--corpus is for one component, and there are several"));
    }
    for task in &tasks {
        // Inputs are deleted by --minimise; what is kept for ever must not stand among them.
        if !yaml_files(&task.corpus).is_empty() {
            let why = "case files are no inputs of the fuzzer: a corpus is a folder of its own";
            return Err(Error::new(why).at(&task.corpus));
        }
    }
    Ok(tasks)
}

impl Task<'_> {
    /// The component, and whether each input chooses its options.
    fn subject(&self) -> Result<(Subject, bool), Error> {
        match &self.target {
            Target::Declared(manifest, declared) => {
                Ok((Subject::declared(manifest, declared), false))
            }
            Target::Builtin(name) => {
                let mut subject = Subject::builtin(self.contract, name).map_err(Error::new)?;
                subject.corpora = Some(self.corpora.clone());
                Ok((subject, name.ends_with("/reference")))
            }
        }
    }

    fn name(&self) -> &str {
        match &self.target {
            Target::Declared(_, declared) => &declared.name,
            Target::Builtin(name) => name,
        }
    }

    fn start(&self) -> Result<Session, Error> {
        coverage::start();
        let (subject, any_options) = self.subject()?;
        Session::start(subject, any_options, &self.places, self.seed)
    }
}

/// One job, in a process of its own.
fn run_as_job(task: &Task<'_>, result: PathBuf) -> Done {
    // The parent says when to stop, and is told what was found.
    let _ = ctrlc::set_handler(|| {
        interrupt::ask();
    });
    end_with_parent(result.parent().map(Path::to_owned));
    let limits = Limits {
        seed: task.seed,
        time: task.arguments.time,
        runs: task.arguments.runs.unwrap_or(u64::MAX),
        corpus: task.corpus.clone(),
        // Beside the result, in the folder that the parent takes away: this process just ends.
        beginnings: result.with_file_name("beginnings"),
    };
    let tell = |(cases, calls, bugs)| println!("{cases} {calls} {bugs}");
    let done = move |results: JobResult| {
        let text = serde_json::to_string(&results).expect("a report can be written");
        match write_atomically(&result, text.as_bytes()) {
            Ok(()) => Next::Exit(0),
            Err(error) => job::failed(&error),
        }
    };
    Err(job::run(task.start()?, limits, tell, done).into())
}

/// Ends this job once the run that started it is gone: then its standard input is at its end. The
/// components and the temporary folder go with it.
fn end_with_parent(folder: Option<PathBuf>) {
    thread::spawn(move || {
        let mut nothing = [0];
        while matches!(std::io::stdin().read(&mut nothing), Ok(1)) {}
        process::kill_all();
        if let Some(folder) = folder {
            let _ = fs::remove_dir_all(folder);
        }
        engine::exit(2)
    });
}

/// The jobs of one component, seen from outside.
fn fuzz(task: &Task<'_>) -> Result<(Vec<ComponentReport>, BTreeSet<Key>), Error> {
    // Mistakes show here, once, and not in every job.
    task.subject()?;
    fs::create_dir_all(&task.corpus).map_err(|error| Error::io("make", &task.corpus, &error))?;
    let before = kept(task.contract, &task.corpora, task.name());
    let reported = before.iter().filter(|(_, file)| file.reported);
    let reported: BTreeSet<Key> = reported.flat_map(|(_, file)| Key::all_of_file(file)).collect();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = if task.arguments.jobs == 0 { cores } else { task.arguments.jobs };
    let bar = bar(task.name());
    let progress = Mutex::new(vec![[0; 3]; jobs]);
    let results: Vec<Result<JobResult, Error>> = thread::scope(|scope| {
        let tell = |job: usize, numbers: [u64; 3]| {
            let mut all = progress.lock().expect("no thread panics with the lock");
            all[job] = numbers;
            let sum = |index: usize| all.iter().map(|numbers| numbers[index]).sum::<u64>();
            let [cases, calls] = [count(sum(0), "case"), count(sum(1), "call")];
            bar.set_message(format!("{cases}, {calls}, {}", count(sum(2), "finding")));
        };
        let jobs: Vec<_> = (0..jobs)
            .map(|job| scope.spawn(move || run_job(task, job, &|numbers| tell(job, numbers))))
            .collect();
        jobs.into_iter().map(|job| job.join().expect("a job does not panic")).collect()
    });
    bar.finish_and_clear();
    let (mut done, mut failed) = (Vec::new(), None);
    for result in results {
        match result {
            Ok(result) => done.push(result),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let (mut reports, keys) = deduplicate(merge_jobs(done), &reported, task)?;
    warn_of_missed(task, &before, &keys, &mut reports);
    if let Some(error) = failed {
        could_not_run(task, &error, &mut reports);
    }
    if let Target::Declared(manifest, declared) = task.target {
        for report in &mut reports {
            report.location = Some(manifest.location(declared));
        }
    }
    Ok((reports, keys))
}

/// Says in the first report what an earlier run found, no report has, and was not met again.
fn warn_of_missed(
    task: &Task<'_>,
    before: &[(PathBuf, CaseFile)],
    keys: &BTreeSet<Key>,
    reports: &mut [ComponentReport],
) {
    let missed = |(path, file): &&(PathBuf, CaseFile)| {
        let of_file = Key::all_of_file(file);
        let is_of_file = |key: &Key| of_file.iter().any(|other| other.anywhere() == key.anywhere());
        let met = keys.iter().any(is_of_file);
        let here = file.place.is_some_and(|place| task.places.contains(&place));
        !file.reported && !met && here && path.is_file()
    };
    let Some(report) = reports.first_mut() else { return };
    report.warnings.extend(before.iter().filter(missed).map(|(path, _)| {
        let path = path.display();
        format!("{path} was found by an earlier run and is not met again: replay it")
    }));
}

/// Says in a report that a job ended before its time; what the others found stays there.
fn could_not_run(task: &Task<'_>, error: &Error, reports: &mut Vec<ComponentReport>) {
    if reports.is_empty() {
        let place = task.places.first().copied().unwrap_or(Place::CPU_F32);
        reports.push(blank_report(task.contract, task.name(), place));
    }
    reports[0].status = Status::Error;
    reports[0].reason = Some(error.to_string());
}

fn bar(name: &str) -> ProgressBar {
    if !is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {msg}")
        .expect("the template is well formed");
    let bar = ProgressBar::new_spinner().with_style(style).with_prefix(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// What the names of the folders of jobs begin with.
const JOB_FOLDER: &str = "shakedown-fuzz-";

/// The file that is locked for as long as the run of a job's folder lives.
const LOCK: &str = "lock";

/// A folder for a job in that of temporary files.
fn job_folder(temporary: &Path) -> std::io::Result<(TempDir, File)> {
    let folder = tempfile::Builder::new().prefix(JOB_FOLDER).tempdir_in(temporary)?;
    let new = folder.path().join("new");
    let lock = File::create_new(&new)?;
    lock.lock()?;
    // Under its name it is never without its lock.
    fs::rename(&new, folder.path().join(LOCK))?;
    Ok((folder, lock))
}

/// Takes away what runs that were killed left in the folder of temporary files.
fn remove_left_behind(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(JOB_FOLDER);
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let lock = entry.path().join(LOCK);
        let is_file = lock.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file && File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A job that is on the list of those that run.
struct Listed(u32);

impl Listed {
    fn new(job: u32) -> Listed {
        JOBS.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
        Listed(job)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        JOBS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// The command of one job, which leaves what it says in a file.
fn command_of_job(task: &Task<'_>, job: usize, result: &Path) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("fuzz");
    if let Target::Declared(manifest, _) = task.target {
        command.arg("--manifest").arg(manifest.path());
    }
    let places: Vec<String> = task.places.iter().map(Place::to_string).collect();
    command.arg("--places").arg(places.join(","));
    command.arg("--corpus").arg(&task.corpus);
    command.arg("--time").arg(format!("{}ms", task.arguments.time.as_millis()));
    command.arg("--seed").arg((task.seed + job as u64).to_string());
    if let Some(runs) = task.arguments.runs {
        command.arg("--runs").arg(runs.to_string());
    }
    command.arg("--").arg(task.name());
    command.env(RESULT, result).stdin(Stdio::piped()).stdout(Stdio::piped());
    Ok(command)
}

/// Runs one job and gives what it says.
fn run_job(task: &Task<'_>, job: usize, tell: &dyn Fn([u64; 3])) -> Result<JobResult, Error> {
    let wrong = |why: String| Error::new(why).within(task.name().to_owned());
    let io = |error: std::io::Error| wrong(format!("cannot run a job of the fuzzer: {error}"));
    let (folder, _lock) = job_folder(&std::env::temp_dir()).map_err(io)?;
    let result = folder.path().join("results.json");
    let mut stderr = tempfile::tempfile().map_err(io)?;
    let mut command = command_of_job(task, job, &result).map_err(io)?;
    command.stderr(stderr.try_clone().map_err(io)?);
    let mut child = command.spawn().map_err(io)?;
    let _listed = Listed::new(child.id());
    // The job ends with it.
    let _alive = child.stdin.take();
    let lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
    for line in lines.map_while(Result::ok) {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        if let Ok(numbers) = <[u64; 3]>::try_from(numbers) {
            tell(numbers);
        }
    }
    let status = child.wait().map_err(io)?;
    if let (true, Ok(text)) = (status.success(), fs::read_to_string(&result)) {
        return serde_json::from_str(&text)
            .map_err(|error| wrong(format!("cannot read the result of a fuzzing job: {error}")));
    }
    stderr.rewind().map_err(io)?;
    let last: Vec<String> = BufReader::new(stderr).lines().map_while(Result::ok).collect();
    let tail = last[last.len().saturating_sub(12)..].join("\n");
    Err(wrong(format!(
        "a job of the fuzzer ended with {status}; the case in flight is kept in {}, and the next \
         run begins with it\n{tail}",
        found_folder(&task.corpora, task.contract.id()).display()
    )))
}

/// One report for each place of what several jobs say; their findings come beside it, as each may
/// have been found by several jobs at several places.
fn merge_jobs(results: Vec<JobResult>) -> (Vec<ComponentReport>, Vec<Occurrence>) {
    let (mut all, mut findings): (Vec<ComponentReport>, Vec<Occurrence>) = Default::default();
    for AtOnePlace { mut report, met, behaves } in results.into_iter().flatten() {
        let found = std::mem::take(&mut report.findings).into_iter().zip(met);
        findings.extend(found.map(|(finding, times)| Occurrence {
            place: report.place,
            behaves: behaves.clone(),
            finding,
            times,
        }));
        let Some(one) = all.iter_mut().find(|one| one.place == report.place) else {
            all.push(report);
            continue;
        };
        one.cases += report.cases;
        one.calls += report.calls;
        one.elapsed_ms = one.elapsed_ms.max(report.elapsed_ms);
        for (class, count) in report.classes {
            *one.classes.entry(class).or_default() += count;
        }
        one.cut = one.cut.or(report.cut);
        one.warnings.extend(report.warnings);
        one.warnings.dedup();
        for (same, invariant) in one.invariants.iter_mut().zip(report.invariants) {
            same.cases += invariant.cases;
            // What held in one job may have failed in another, also what is known to fail.
            if let (InvariantStatus::Vacuous, _)
            | (_, InvariantStatus::Known)
            | (InvariantStatus::Pass, InvariantStatus::Fail) = (same.status, invariant.status)
            {
                (same.status, same.reason) = (invariant.status, invariant.reason);
            }
        }
    }
    (all, findings)
}

/// A finding of one job at one place.
struct Occurrence {
    place: Place,
    behaves: Option<String>,
    finding: Finding,
    times: u64,
}

/// What a finding of a component is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// It behaves like a known bug, or raises an exception: whatever breaks by that is one bug.
    Named(String),
    /// Nobody knows why the invariant breaks. It is the same for as long as the component gives the
    /// same wrong outputs at the place.
    Unnamed { invariant: String, place: String, behaves: Option<String>, finite: bool },
}

/// What makes findings one bug, at whatever place: the name, or the law where it is about no
/// outputs; and whether the outputs are finite.
type Cause = (String, bool);

impl Key {
    fn new(
        invariant: &str,
        name: Option<String>,
        found: &str,
        place: String,
        behaves: Option<String>,
    ) -> Key {
        match name {
            Some(name) => Key::Named(name),
            None => Key::Unnamed {
                invariant: invariant.to_owned(),
                place,
                behaves,
                finite: Way::read(found).is_finite(),
            },
        }
    }

    fn of_file(file: &CaseFile) -> Key {
        let found = file.why.as_deref().unwrap_or("");
        let exception = || Way::read(found).exception().map(str::to_owned);
        let name = file.diagnosis.first().cloned().or_else(exception);
        Key::of_invariant(file, file.invariant.as_deref().unwrap_or_default(), name)
    }

    fn of_invariant(file: &CaseFile, invariant: &str, name: Option<String>) -> Key {
        let found = file.why.as_deref().unwrap_or("");
        let place = file.place.map_or_else(String::new, |place| place.to_string());
        Key::new(invariant, name, found, place, file.behaves.clone())
    }

    /// What a file is known by: its invariant, and the others that the same bug breaks.
    fn all_of_file(file: &CaseFile) -> BTreeSet<Key> {
        let name = file.diagnosis.first().cloned();
        let also = file.also.iter().map(|id| Key::of_invariant(file, id, name.clone()));
        also.chain([Key::of_file(file)]).collect()
    }

    /// The same at whatever place.
    fn anywhere(&self) -> (&str, &str) {
        match self {
            Key::Named(name) => ("", name),
            Key::Unnamed { invariant, finite: true, .. } => (invariant, ""),
            Key::Unnamed { invariant, finite: false, .. } => (invariant, "is not finite"),
        }
    }

    fn cause(&self) -> Cause {
        match self {
            Key::Named(name) => (name.clone(), true),
            Key::Unnamed { invariant, finite, .. } => {
                let is_law = NOT_OF_OUTPUTS.contains(&&**invariant);
                (if is_law { format!("unnamed {invariant}") } else { String::new() }, *finite)
            }
        }
    }
}

impl Occurrence {
    fn key(&self) -> Key {
        let Finding { invariant, diagnosis, found, .. } = &self.finding;
        let name = reason(diagnosis, &Way::read(found));
        Key::new(invariant, name, found, self.place.to_string(), self.behaves.clone())
    }
}

/// Puts every bug into the report once, at the place where its smallest case was found, and leaves
/// one case of each bug at each place on disk. One that was reported before says so; one that is
/// allowed is counted in a warning. Gives the bugs that the reports speak of.
fn deduplicate(
    (mut reports, mut met): (Vec<ComponentReport>, Vec<Occurrence>),
    reported: &BTreeSet<Key>,
    task: &Task<'_>,
) -> Result<(Vec<ComponentReport>, BTreeSet<Key>), Error> {
    let files = remove_larger(task)?;
    let file = |one: &Occurrence| files.get(one.finding.case_file.as_deref()?);
    // The one to tell comes first, and of each invariant the one whose case is the smallest; what
    // could not be written comes last.
    met.sort_by_key(|one| {
        let is_left =
            file(one).is_some_and(|(_, left)| one.finding.case_file.as_ref() == Some(left));
        let measure = file(one).map(|(measure, _)| measure.clone());
        (!is_left, prominence(&one.finding.invariant), measure.is_none(), measure)
    });
    let keys: BTreeSet<Key> = met.iter().map(Occurrence::key).collect();
    let is_allowed = |key: &Key| task.arguments.allow_known && reported.contains(key);
    let new: BTreeSet<(&str, &str)> =
        keys.iter().filter(|key| !is_allowed(key)).map(Key::anywhere).collect();
    let bug = |one: &Occurrence| {
        let key = one.key();
        (new.contains(&key.anywhere()), key.cause())
    };
    // A case breaks several invariants: a bug was met as often as the one met most.
    let mut times: BTreeMap<_, BTreeMap<String, u64>> = BTreeMap::new();
    for one in &met {
        let of_bug = times.entry(bug(one)).or_default();
        *of_bug.entry(one.finding.invariant.clone()).or_default() += one.times;
    }
    let mut told: BTreeMap<(bool, Cause), Told> = BTreeMap::new();
    for mut one in met {
        // The file of the same bug that an earlier run found.
        if let Some((_, left)) = file(&one) {
            let removed = one.finding.case_file.replace(left.clone()).unwrap_or_default();
            one.finding.replay = one.finding.replay.replace(&removed, left);
        }
        let (bug, key) = (bug(&one), one.key());
        let (place, mut finding) = (one.place, one.finding);
        let report = reports.iter_mut().find(|report| report.place == place);
        let report = report.expect("each finding comes with a report");
        let is_new = bug.0;
        if reported.contains(&key) {
            finding.again = Some(REPORTED.to_owned());
        }
        if let Some(told) = told.get_mut(&bug) {
            if is_new && told.place == place && told.invariants.insert(finding.invariant.clone()) {
                (finding.case_file, finding.replay) = told.kept.clone();
                report.findings.push(finding);
            }
            continue;
        }
        let invariants = BTreeSet::from([finding.invariant.clone()]);
        let kept = (finding.case_file.clone(), finding.replay.clone());
        if is_new {
            report.findings.push(finding);
        } else {
            let why = match &key {
                Key::Named(name) => format!(" ({name})"),
                Key::Unnamed { .. } => String::new(),
            };
            let often = times[&bug].values().max().copied().unwrap_or_default();
            let (invariant, often) = (&finding.invariant, count(often, "time"));
            report.warnings.push(format!("{invariant}{why} is a known finding, met {often}"));
        }
        told.insert(bug, Told { place, invariants, kept });
    }
    for report in &mut reports {
        report.number_bugs();
        let new = |id: &str| report.findings.iter().any(|finding| finding.invariant == id);
        for invariant in &mut report.invariants {
            if new(&invariant.id) {
                (invariant.status, invariant.reason) = (InvariantStatus::Fail, None);
            } else if let (InvariantStatus::Fail, Some(reason)) =
                (invariant.status, &invariant.reason)
            {
                report.warnings.push(format!("{} {reason}", invariant.id));
            } else if invariant.status == InvariantStatus::Fail {
                invariant.status = InvariantStatus::Known;
                invariant.reason = Some("found before, or at another place".to_owned());
            }
        }
        let fails = report.invariants.iter().any(|one| one.status == InvariantStatus::Fail);
        match (fails, report.status) {
            (true, _) => report.status = Status::Fail,
            (false, Status::Fail) => report.status = Status::Pass,
            _ => {}
        }
    }
    Ok((reports, keys))
}

/// A bug that the reports speak of.
struct Told {
    place: Place,
    /// Those of which a finding stands there.
    invariants: BTreeSet<String>,
    /// Where its case is, and how to call the component on it again.
    kept: (Option<String>, String),
}

/// Leaves one case of each bug at each place under the same options, that of the invariant to tell
/// and of its cases the smallest, and names the invariants of the others in it. Gives the
/// complexity of all cases, by path, and the file that is left of the bug.
fn remove_larger(task: &Task<'_>) -> Result<BTreeMap<String, (Measure, String)>, Error> {
    let mut measures = BTreeMap::new();
    let mut left: Vec<(_, PathBuf, CaseFile, bool)> = Vec::new();
    let mut surplus = Vec::new();
    let mut files: Vec<_> = kept(task.contract, &task.corpora, task.name())
        .into_iter()
        .map(|(path, file)| {
            let first = prominence(file.invariant.as_deref().unwrap_or_default());
            (first, task.contract.measure(&*file.case), path, file)
        })
        .collect();
    files.sort_by(|a, b| (a.0, &a.1, &a.2).cmp(&(b.0, &b.1, &b.2)));
    for (_, measure, path, file) in files {
        let key = Key::of_file(&file);
        let unclear = matches!(key, Key::Unnamed { behaves: None, .. });
        let is_unnamed = matches!(key, Key::Unnamed { .. });
        let place = file.place.map(|place| place.to_string());
        let options = match task.target {
            Target::Declared(..) => file.options.yaml(),
            // The inputs chose them.
            Target::Builtin(_) => String::new(),
        };
        let same = (key.cause(), file.behaves.clone(), place, options);
        let keys = Key::all_of_file(&file);
        // What nobody can name, and was not reported with the other, may be another bug.
        let is_of = |into: &CaseFile| {
            let is_open = !into.reported && !file.reported;
            !is_unnamed || is_open || keys.is_subset(&Key::all_of_file(into))
        };
        let mut of_bug = left.iter_mut();
        let of_bug = of_bug.find(|(one, _, into, _)| *one == same && !unclear && is_of(into));
        let stays = of_bug.as_ref().map_or(&path, |(_, into, ..)| into).display().to_string();
        measures.insert(path.display().to_string(), (measure, stays));
        let Some((_, _, into, changed)) = of_bug else {
            left.push((same, path, file, false));
            continue;
        };
        for id in file.invariant.iter().chain(&file.also) {
            if into.invariant.as_ref() != Some(id) && !into.also.contains(id) {
                into.also.push(id.clone());
                *changed = true;
            }
        }
        *changed |= file.reported && !into.reported;
        into.reported |= file.reported;
        surplus.push(path);
    }
    for (_, path, file, _) in left.iter().filter(|(.., changed)| *changed) {
        file.write(path)?;
    }
    for path in surplus {
        fs::remove_file(&path).map_err(|error| Error::io("remove", &path, &error))?;
    }
    Ok(measures)
}

/// The corpus of one component made small.
/// Deterministic: the smallest inputs come first, and each that makes something new happen is
/// kept.
fn minimise(task: &Task<'_>) -> Result<String, Error> {
    let mut session = task.start()?.dry();
    // What cannot be called makes nothing happen, which says nothing about the inputs.
    let unable = || {
        let why = "the component does not load, hangs or dies: nothing was removed";
        Error::new(why).within(task.name().to_owned())
    };
    if session.is_over() {
        return Err(unable());
    }
    let mut inputs = Vec::new();
    for folder in [&task.corpus].into_iter().chain(&task.arguments.merge) {
        let entries = fs::read_dir(folder).map_err(|error| Error::io("read", folder, &error))?;
        for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
            let bytes = fs::read(&path).map_err(|error| Error::io("read", &path, &error))?;
            inputs.push((bytes.len(), bytes, path));
        }
    }
    inputs.sort();
    let (mut before, mut kept) = (0, 0);
    let mut happened = BTreeSet::new();
    let mut surplus = Vec::new();
    for (_, bytes, path) in &inputs {
        coverage::clear();
        let is_case = session.input(bytes)?;
        let known = happened.len();
        happened.extend(coverage::features());
        let ours = path.parent() == Some(&task.corpus);
        before += u32::from(ours);
        if is_case && happened.len() > known {
            kept += 1;
            if !ours {
                let name = path.file_name().expect("it is a file");
                write_atomically(&task.corpus.join(name), bytes)?;
            }
        } else if ours {
            surplus.push(path);
        }
    }
    if session.is_over() {
        return Err(unable());
    }
    for path in surplus {
        fs::remove_file(path).map_err(|error| Error::io("remove", path, &error))?;
    }
    let folder = task.corpus.display();
    let from = count(inputs.len() as u64, "input");
    Ok(format!("{folder}: {kept} of {from} kept ({before} were there), {} events", happened.len()))
}

#[cfg(test)]
mod tests;
