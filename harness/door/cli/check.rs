//! `shakedown check`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use super::{CheckArguments, Done, is_terminal, output, values};
use crate::contract::erased::RENAMED;
use crate::engine::check::run as check_component;
use crate::engine::subject::{Budget, Subject};
use crate::files::manifest::{Declared, Manifest};
use crate::render::text::write_component;
use crate::report::{ComponentReport, Report, Shard};
use crate::value::error::{Error, nearest};
use crate::value::place::Place;

/// One component with its places and the invariants asked for; all of them where the list is empty.
pub(super) struct Task<'a> {
    pub(super) declared: &'a Declared,
    pub(super) places: Vec<Place>,
    pub(super) only: Vec<String>,
}

/// What came of a task: its reports, and the table of `--values`.
type Outcome = Result<(Vec<ComponentReport>, String), Error>;

pub(super) fn run(arguments: &CheckArguments) -> Done {
    let started = Instant::now();
    let manifest = Manifest::read(&arguments.manifest)?;
    let asked = match &arguments.places {
        Some(places) => Some(places.0.clone()),
        None => Place::from_env()?,
    };
    let mut tasks = select(&manifest, asked.as_deref(), &arguments.only)?;
    if let Some(shard) = arguments.shard {
        keep(shard, &mut tasks);
    }
    let budget = Budget { cases: arguments.cases, seed: arguments.seed, time: arguments.time };
    let bar = progress_bar(&tasks);
    let outcomes = in_parallel(arguments.jobs, &tasks, |task| {
        bar.set_message(task.declared.name.clone());
        run_task(&manifest, task, &budget, arguments.values, &bar)
    });
    bar.finish_and_clear();

    let (mut to, paint) = output();
    let mut components = Vec::new();
    for outcome in outcomes {
        let (reports, table) = outcome?;
        for report in &reports {
            write_component(&mut to, report, paint)?;
        }
        write!(to, "{table}")?;
        components.extend(reports);
    }
    let report = Report::new(arguments.seed, arguments.shard, started, components);
    arguments.files.conclude(&report, &mut to, paint)
}

/// The components whose name, or whose `name/invariant`, contains one of the patterns.
pub(super) fn select<'a>(
    manifest: &'a Manifest,
    asked: Option<&[Place]>,
    patterns: &[String],
) -> Result<Vec<Task<'a>>, Error> {
    let patterns: Vec<String> = patterns.iter().map(|pattern| up_to_date(pattern)).collect();
    let mut tasks = Vec::new();
    for declared in &manifest.components {
        let places = declared.places(asked);
        let whole = |pattern: &String| declared.name.contains(pattern);
        if patterns.is_empty() || patterns.iter().any(whole) {
            tasks.push(Task { declared, places, only: Vec::new() });
            continue;
        }
        let invariants = declared.contract.invariants().iter();
        let only: Vec<String> = invariants
            .map(|invariant| invariant.id.to_owned())
            .filter(|id| {
                patterns.iter().any(|pattern| format!("{}/{id}", declared.name).contains(pattern))
            })
            .collect();
        if !only.is_empty() {
            tasks.push(Task { declared, places, only });
        }
    }
    if tasks.is_empty() {
        let names: Vec<&str> = manifest.components.iter().map(|c| c.name.as_str()).collect();
        let patterns = patterns.join(" --only ");
        let near = nearest(&patterns, names.iter().copied());
        let names = names.join("`, `");
        let message =
            format!("`--only {patterns}` matches nothing; the components are `{names}`{near}");
        return Err(Error::new(message));
    }
    Ok(tasks)
}

/// A pattern in which an invariant has the name that it has now.
fn up_to_date(pattern: &str) -> String {
    let Some((component, id)) = pattern.rsplit_once('/') else { return pattern.to_owned() };
    let Some((_, now)) = RENAMED.iter().find(|(before, _)| *before == id) else {
        return pattern.to_owned();
    };
    eprintln!("warning: --only {pattern}: `{id}` is called `{now}` now");
    format!("{component}/{now}")
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
) -> Outcome {
    let Task { declared, places, only } = task;
    let mut subject = Subject::declared(manifest, declared);
    subject.only.clone_from(only);
    let mut reports = Vec::new();
    let mut table = String::new();
    for &place in places {
        let count = |cases: u64| {
            if cases.is_multiple_of(16) {
                bar.tick();
            }
        };
        let mut report = check_component(&mut subject, place, budget, &count)?;
        report.location = Some(manifest.location(declared));
        if values && report.cases > 0 {
            table.push_str(&values::table(&mut subject, place));
        }
        reports.push(report);
        bar.inc(1);
    }
    Ok((reports, table))
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
