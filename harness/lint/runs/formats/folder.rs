//! Folders: of each run the log that says most, and the files that say with what it was started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::runs::Run;
use crate::runs::formats::sniff::Format;
use crate::runs::formats::{OwnNames, Source, Warnings, head, read_file, read_source};
use crate::runs::formats::{sniff, tensorboard};
use crate::runs::recorder::Recorder;
use shakedown_core::value::error::Error;

/// Folders are looked into so far down.
const DEEPEST: usize = 5;
/// More files than this are not looked at.
const MOST_FILES: usize = 10_000;

/// How files of logs end; one without an ending may be one too.
const ENDINGS: [&str; 10] =
    ["wandb", "json", "jsonl", "ndjson", "csv", "tsv", "parquet", "log", "txt", "out"];

/// JSON of models, tokenizers and settings: no logs, and long.
const NO_LOGS: [&str; 4] = ["config", "tokenizer", "vocab", "index"];

/// The runs in a folder.
pub(super) fn read(folder: &Path, own_names: &OwnNames) -> Result<Vec<Run>, Error> {
    let mut files = Vec::new();
    list(folder, DEEPEST, &mut files)?;
    let groups = grouped(folder, logs(&files, own_names));
    if groups.is_empty() {
        let files = files.len();
        let message = format!("has no log with a known metric: {files} files were looked at");
        return Err(Error::new(message).at(folder));
    }
    Ok(groups.into_iter().flat_map(|(key, logs)| choose(&key.root, logs)).collect())
}

/// What the logs of one run have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The folder of the run.
    root: PathBuf,
    /// What tells runs of one folder apart; nothing where it has one.
    own: String,
}

/// The logs of each run.
fn grouped(folder: &Path, logs: Vec<Log>) -> BTreeMap<Key, Vec<Log>> {
    let kind = |log: &Log| (log.path.parent().map(Path::to_owned), log.runs[0].format.clone());
    let mut siblings = BTreeMap::<_, usize>::new();
    for log in &logs {
        *siblings.entry(kind(log)).or_default() += 1;
    }
    // Two logs of one kind in one folder are two runs, as two launches under `wandb` are.
    let has_twins = |log: &Log| siblings[&kind(log)] > 1;
    let twin_folders: Vec<PathBuf> = logs
        .iter()
        .filter(|log| has_twins(log))
        .filter_map(|log| log.path.parent().map(Path::to_owned))
        .collect();
    let mut groups = BTreeMap::<Key, Vec<Log>>::new();
    for log in logs {
        let parent = log.path.parent().unwrap_or(folder);
        let own = if twin_folders.iter().any(|twins| twins == parent) {
            log.path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
        } else {
            launch(&log.path)
        };
        let key = Key { root: root(folder, parent), own: own.unwrap_or_default() };
        groups.entry(key).or_default().push(log);
    }
    // What a run logs to W&B and elsewhere is said of one run.
    let launches: Vec<Key> = groups
        .iter()
        .filter(|(key, logs)| {
            logs.iter().all(|log| launch(&log.path).is_some()) && !key.own.is_empty()
        })
        .map(|(key, _)| key.clone())
        .collect();
    for key in launches {
        let whole = Key { own: String::new(), ..key.clone() };
        if groups.contains_key(&whole) {
            let logs = groups.remove(&key).unwrap_or_default();
            groups.entry(whole).or_default().extend(logs);
        }
    }
    groups
}

/// The folder `run-..` in which W&B keeps what was logged by one launch.
fn launch(path: &Path) -> Option<String> {
    let names =
        path.ancestors().skip(1).filter_map(Path::file_name).map(|name| name.to_string_lossy());
    let is_launch = |name: &str| name.starts_with("run-") || name.starts_with("offline-run-");
    names.into_iter().find(|name| is_launch(name)).map(|name| name.into_owned())
}

/// The folder of a run, of which a log lies in `parent`: without what libraries make inside it.
fn root(folder: &Path, parent: &Path) -> PathBuf {
    let mut root = parent;
    while let (Some(above), Some(name)) = (root.parent(), root.file_name()) {
        let name = name.to_string_lossy();
        let is_inside = ["checkpoint-", "global_step", "run-", "offline-run-"]
            .iter()
            .any(|start| name.starts_with(start))
            || ["files", "logs", "runs", "wandb", "tensorboard"].contains(&&*name)
            || above.file_name().is_some_and(|above| above == "runs");
        if root == folder || !is_inside {
            break;
        }
        root = above;
    }
    root.to_owned()
}

/// The runs of the log that says most, with what a reader should know of that choice.
fn choose(root: &Path, mut logs: Vec<Log>) -> Vec<Run> {
    logs.sort_by_key(|log| std::cmp::Reverse((log.score(), checkpoint(&log.path))));
    let mut logs = logs.into_iter();
    let Some(mut chosen) = logs.next() else { return Vec::new() };
    let others: Vec<String> = logs.map(|log| shown(root, &log.path)).collect();
    let config = beside(root, &chosen.path);
    for run in &mut chosen.runs {
        if !others.is_empty() {
            let (path, others) = (shown(root, &chosen.path), others.join(", "));
            run.warnings.push(format!("{path} says most of this run, not read: {others}"));
        }
        run.config_files.clone_from(&config);
    }
    chosen.runs
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// The number of the checkpoint in which a log lies.
fn checkpoint(path: &Path) -> Option<u64> {
    let parent = path.parent()?.file_name()?.to_str()?;
    parent.rsplit_once(['-', '_'])?.1.parse().ok()
}

/// The files that say with what a run was started.
fn beside(root: &Path, log: &Path) -> Vec<PathBuf> {
    let mut folders = vec![log.parent().unwrap_or(root).to_owned()];
    folders.push(folders[0].join("files"));
    folders.push(root.to_owned());
    let mut found = Vec::new();
    for folder in folders {
        let named = ["config.yaml", ".hydra/config.yaml"].map(|name| folder.join(name));
        let entries = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
        let mut arguments: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| has_arguments(path)).collect();
        arguments.sort_unstable();
        found.extend(named.into_iter().chain(arguments).filter(|path| path.is_file()));
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|path| seen.insert(path.clone()));
    found
}

/// Whether a file has arguments of training as a text; `training_args.bin` would have to be
/// executed.
fn has_arguments(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_text = [".yaml", ".yml", ".json"].iter().any(|ending| name.ends_with(ending));
    name.starts_with("training_args") && is_text
}

/// A log with the runs in it.
struct Log {
    path: PathBuf,
    runs: Vec<Run>,
}

impl Log {
    /// How much it says: rows times known metrics.
    fn score(&self) -> u64 {
        self.runs.iter().map(|run| run.rows * run.series.len() as u64).sum()
    }
}

/// All files in a folder that may be logs, in the order of their names.
fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let entries = std::fs::read_dir(folder).map_err(|error| Error::io("read", folder, &error))?;
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // A link is followed to a file, not to a folder: those may go in circles.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth > 0 && !name.starts_with('.') && name != "node_modules" {
            // What cannot be looked into is none of ours.
            list(&path, depth - 1, files).ok();
        } else if path.is_file() && may_be_log(&path, &name) && files.len() < MOST_FILES {
            files.push(path);
        }
    }
    Ok(())
}

fn may_be_log(path: &Path, name: &str) -> bool {
    if name.starts_with("events.out.tfevents") {
        return true;
    }
    let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
    let is_other = NO_LOGS.iter().any(|part| name.contains(part)) && name.ends_with(".json");
    ending.is_some_and(|ending| ENDINGS.contains(&&*ending)) && !is_other
}

/// Those of the files that are logs with a known metric. The event files of a folder are one log.
fn logs(files: &[PathBuf], own_names: &OwnNames) -> Vec<Log> {
    let mut events = BTreeMap::<&Path, Vec<&PathBuf>>::new();
    let mut logs = Vec::new();
    for path in files {
        let source = Source::File(path);
        let format =
            head(&source).and_then(|(head, is_whole)| sniff::format(&head, is_whole, own_names));
        match format {
            Ok(Format::TensorBoard) => {
                events.entry(path.parent().unwrap_or(path)).or_default().push(path);
            }
            // Data sets are as long as logs, and have no metric.
            Ok(Format::JsonLines | Format::Csv) if !begins_with_metric(&source, own_names) => {}
            Ok(_) => logs.extend(read_file(path, own_names).ok().map(|runs| (path.clone(), runs))),
            Err(_) => {}
        }
    }
    for paths in events.into_values() {
        let runs = one_of_events(&paths, own_names).ok();
        logs.extend(paths.first().map(|path| (*path).clone()).zip(runs));
    }
    let has_metric = |(path, mut runs): (PathBuf, Vec<Run>)| {
        runs.retain(|run| !run.series.is_empty());
        (!runs.is_empty()).then_some(Log { path, runs })
    };
    logs.into_iter().filter_map(has_metric).collect()
}

/// Whether the first rows of a log have a known metric.
fn begins_with_metric(source: &Source<'_>, own_names: &OwnNames) -> bool {
    let rows = head(source).and_then(|(head, _)| read_source(&Source::Bytes(&head), own_names));
    rows.is_ok_and(|logs| {
        logs.into_iter().flat_map(|log| log.runs(&[])).any(|run| !run.series.is_empty())
    })
}

/// The run that the event files of one folder hold, in the order of their names: of their times.
fn one_of_events(paths: &[&PathBuf], own_names: &OwnNames) -> Result<Vec<Run>, Error> {
    let (mut recorder, mut warnings) = (Recorder::new(own_names.clone()), Warnings::default());
    for path in paths {
        tensorboard::read(&mut *Source::File(path).open()?, &mut recorder, &mut warnings)?;
    }
    let log = super::Log::new(Format::TensorBoard, recorder, warnings);
    Ok(log.runs(&paths.iter().map(|path| (*path).clone()).collect::<Vec<PathBuf>>()))
}
