//! `shakedown check`.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use super::{CheckArguments, Done, MANIFEST, is_terminal, values};
use shakedown_contracts::REGISTRY;
use shakedown_core::value::error::{Error, nearest, unknown};
use shakedown_core::value::place::Place;
use shakedown_engine::files::last_failed;
use shakedown_engine::files::manifest::{Declared, Manifest};
use shakedown_engine::report::{ComponentReport, ExitCode, Report, Shard, Status};
use shakedown_engine::subject::{Budget, Subject};
use shakedown_engine::{check, interrupt};

/// One component with its places and the invariants asked for; all of them where the list is empty.
pub(super) struct Task<'a> {
    pub(super) declared: &'a Declared,
    pub(super) places: Vec<Place>,
    pub(super) only: Vec<String>,
}

/// Random cases under each changed setting of a sweep, at the most.
const SWEEP_CASES: u64 = 12;

pub(super) fn run(arguments: &CheckArguments) -> Done {
    let started = Instant::now();
    if arguments.manifest == Path::new(MANIFEST) && !arguments.manifest.exists() {
        let message = format!("there is no {MANIFEST} here: name a manifest to check");
        return Err(Error::new(message).into());
    }
    let manifest = Manifest::read(&REGISTRY, &arguments.manifest)?
        .loaded_within(arguments.time)
        .with_output_shown(arguments.show_output);
    let asked = match &arguments.places {
        Some(places) => Some(places.0.clone()),
        None => Place::from_env()?,
    };
    let mut tasks = select(&manifest, asked.as_deref(), &arguments.only)?;
    keep_named(&manifest, &arguments.component, &mut tasks)?;
    if let Some(stage) = arguments.stage {
        tasks.retain(|task| task.declared.contract.stage() == stage);
        if tasks.is_empty() {
            let message = format!("no component asked for is of the stage {}", stage.name());
            return Err(Error::new(message).within("--stage").into());
        }
    }
    if arguments.last_failed {
        keep_failed(&arguments.manifest, &mut tasks)?;
    }
    stop_when_asked(|| ());
    if let Some(shard) = arguments.shard {
        keep(shard, &mut tasks);
    }
    let budget = Budget { cases: arguments.cases, seed: arguments.seed, time: arguments.time };
    let bar = progress_bar(&tasks);
    let run = |task: &Task<'_>, budget: &Budget| {
        run_task(&manifest, task, budget, arguments.values, &bar)
    };
    let outcomes = match tasks.split_first().filter(|_| arguments.sweep) {
        Some((first, changed)) => {
            let mut outcomes = vec![run(first, &budget)];
            if outcomes[0].iter().all(|(report, _)| report.status == Status::Pass) {
                let few = Budget { cases: budget.cases.min(SWEEP_CASES), ..budget.clone() };
                outcomes.extend(in_parallel(arguments.jobs, changed, |task| run(task, &few)));
            } else {
                let name = &first.declared.name;
                eprintln!("no sweep: {name} has to pass before its settings are changed");
            }
            outcomes
        }
        None => in_parallel(arguments.jobs, &tasks, |task| run(task, &budget)),
    };
    bar.finish_and_clear();

    let (reports, tables): (Vec<_>, Vec<_>) = outcomes.into_iter().flatten().unzip();
    let report = Report::new(arguments.seed, arguments.shard, started, reports);
    remember(&arguments.manifest, &tasks, &report);
    arguments.files.conclude(&report, &tables)
}

/// Leaves the components of these names; all where there are none.
fn keep_named(
    manifest: &Manifest,
    names: &[String],
    tasks: &mut Vec<Task<'_>>,
) -> Result<(), Error> {
    let known: Vec<&str> = manifest.components.iter().map(|one| one.name.as_str()).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Error::new(unknown("component", name, &known)).within("--component"));
    }
    tasks.retain(|task| names.is_empty() || names.contains(&task.declared.name));
    Ok(())
}

/// Leaves the components and places that failed last; all where none did.
fn keep_failed(manifest: &Path, tasks: &mut Vec<Task<'_>>) -> Result<(), Error> {
    let failed = last_failed::read(manifest)?;
    let is_failed = |name: &str, place| failed.contains(&(name.to_owned(), place));
    let any =
        |task: &Task<'_>| task.places.iter().any(|place| is_failed(&task.declared.name, *place));
    if !tasks.iter().any(any) {
        eprintln!("nothing failed last time: all are checked");
        return Ok(());
    }
    for task in &mut *tasks {
        task.places.retain(|place| is_failed(&task.declared.name, *place));
    }
    tasks.retain(|task| !task.places.is_empty());
    Ok(())
}

/// Keeps which components failed, for the next run. That some invariants hold, or that all do on
/// a part of the cases, is no reason to forget one.
fn remember(manifest: &Path, tasks: &[Task<'_>], report: &Report) {
    let is_whole = |one: &ComponentReport| {
        let mut whole = tasks.iter().filter(|task| task.only.is_empty());
        one.cut.is_none() && whole.any(|task| task.declared.name == one.name)
    };
    let checked = report.components.iter().filter_map(|one| match one.status {
        Status::Fail | Status::Error => Some(((one.name.clone(), one.place), true)),
        Status::Pass if is_whole(one) => Some(((one.name.clone(), one.place), false)),
        Status::Pass | Status::Skipped => None,
    });
    if let Err(error) = last_failed::update(manifest, checked) {
        eprintln!("warning: --last-failed will not know what failed: {error}");
    }
}

/// Has Ctrl-C and SIGTERM end the run with a report of what was done, and the second one at once.
/// `tell` tells others that it ends.
pub(super) fn stop_when_asked(tell: fn()) {
    let stop = move || {
        if interrupt::ask() {
            std::process::exit(ExitCode::Interrupted as i32);
        }
        eprintln!("stopping after the calls under way; once more stops at once");
        tell();
    };
    // Where there is a handler already, it stays.
    let _ = ctrlc::set_handler(stop);
}

/// The components whose name, or whose `name/invariant`, contains one of the patterns.
///
/// # Errors
/// A pattern is in none of them.
pub(super) fn select<'a>(
    manifest: &'a Manifest,
    asked: Option<&[Place]>,
    patterns: &[String],
) -> Result<Vec<Task<'a>>, Error> {
    let mut unmatched: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let mut is_wanted = |name: &str| {
        unmatched.retain(|pattern| !name.contains(pattern));
        patterns.iter().any(|pattern| name.contains(pattern))
    };
    let mut tasks = Vec::new();
    for declared in &manifest.components {
        let whole = is_wanted(&declared.name) || patterns.is_empty();
        let ids = declared.contract.invariants().iter().map(|invariant| invariant.id.to_owned());
        let mut only: Vec<String> =
            ids.filter(|id| is_wanted(&format!("{}/{id}", declared.name))).collect();
        if whole {
            only.clear();
        }
        if whole || !only.is_empty() {
            tasks.push(Task { declared, places: declared.places(asked), only });
        }
    }
    if let [pattern, ..] = unmatched[..] {
        let names: Vec<&str> = manifest.components.iter().map(|c| c.name.as_str()).collect();
        let near = nearest(pattern, names.iter().copied());
        let names = names.join("`, `");
        let message =
            format!("`--only {pattern}` matches nothing; the components are `{names}`{near}");
        return Err(Error::new(message));
    }
    Ok(tasks)
}

/// Leaves the places of a shard, and the components that have some.
fn keep(shard: Shard, tasks: &mut Vec<Task<'_>>) {
    let mut numbers = 0..;
    for task in &mut *tasks {
        task.places.retain(|_| numbers.next().is_some_and(|number| shard.has(number)));
    }
    tasks.retain(|task| !task.places.is_empty());
}

fn run_task(
    manifest: &Manifest,
    task: &Task<'_>,
    budget: &Budget,
    values: bool,
    bar: &ProgressBar,
) -> Vec<(ComponentReport, String)> {
    let Task { declared, places, only } = task;
    let mut subject = Subject::declared(manifest, declared);
    subject.only.clone_from(only);
    let mut reports = Vec::new();
    for &place in places {
        let count = |cases: u64| {
            if cases.is_multiple_of(16) {
                bar.set_message(format!("{} · {place} · case {cases}", declared.name));
            }
        };
        let mut report = check::run(&mut subject, place, budget, &count).unwrap_or_else(|error| {
            let mut report = check::blank_report(declared.contract, &declared.name, place);
            report.status = Status::Error;
            report.reason = Some(error.to_string());
            report
        });
        report.location = Some(manifest.location(declared));
        let mut table = String::new();
        if values && report.cases > 0 {
            table = values::table(&mut subject, place);
        }
        reports.push((report, table));
        bar.inc(1);
    }
    reports
}

/// Runs the tasks on some threads; the outcomes come in the order of the tasks.
fn in_parallel<T: Sync, O: Send>(jobs: usize, tasks: &[T], run: impl Fn(&T) -> O + Sync) -> Vec<O> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = if jobs == 0 { cores } else { jobs };
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Mutex<Option<O>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..jobs.min(tasks.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(index) else { break };
                    let outcome = run(task);
                    *outcomes[index].lock().expect("no thread panics with the lock") =
                        Some(outcome);
                }
            });
        }
    });
    let taken = |outcome: Mutex<Option<O>>| outcome.into_inner().ok().flatten();
    outcomes.into_iter().map(|outcome| taken(outcome).expect("every task was run")).collect()
}

fn progress_bar(tasks: &[Task<'_>]) -> ProgressBar {
    let total: usize = tasks.iter().map(|task| task.places.len()).sum();
    if !is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}  {elapsed}")
        .expect("the template is well formed");
    ProgressBar::new(total as u64).with_style(style)
}
