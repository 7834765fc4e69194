//! Logs in every form in which libraries write them, one file each. What is in a file decides, not
//! what it is called.

mod cells;
mod checksum;
mod console;
mod csv;
mod document;
mod folder;
mod json_lines;
mod lines;
mod literal;
mod parquet;
mod protobuf;
mod sniff;
mod tensorboard;
mod wandb;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use crate::runs::Run;
use crate::runs::formats::sniff::Format;
use crate::runs::names;
use crate::runs::recorder::Recorder;
use crate::runs::row::Cell;
use crate::settings::Library;
use shakedown_core::value::error::{Error, unknown};

/// The metrics that names of a log are declared to be: `my/score` is `reward.mean`.
pub type OwnNames = HashMap<String, String>;

/// The runs in a file or in a folder.
///
/// # Errors
/// It cannot be read, or is of no known format; an own name is given to a metric that does not
/// exist.
pub fn read(path: &Path, own_names: &OwnNames) -> Result<Vec<Run>, Error> {
    if let Some(id) = own_names.values().find(|id| !names::is_known(id)) {
        let known: Vec<&str> = names::known().iter().map(|metric| metric.id.as_str()).collect();
        return Err(Error::new(unknown("metric", id, &known)));
    }
    if path.is_dir() {
        return folder::read(path, own_names);
    }
    read_file(path, own_names)
}

/// The run that rows make, each a list of names and numbers. A number that is missing is left out;
/// NaN is a number that was not finite.
pub fn from_rows<'a, R>(name: &str, rows: impl IntoIterator<Item = R>, own_names: &OwnNames) -> Run
where
    R: IntoIterator<Item = (&'a str, f64)>,
{
    let mut recorder = Recorder::new(own_names.clone());
    for (index, row) in rows.into_iter().enumerate() {
        recorder.row(index + 1, row.into_iter().map(|(name, value)| (name, Cell::from(value))));
    }
    Run::new(name.to_owned(), Vec::new(), "rows", recorder.finish())
}

/// Reads any bytes as each format would be read: they are refused or read, nothing else happens.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let own_names = OwnNames::new();
    // Parquet is read by a crate of its own, with fuzz targets of its own.
    if !bytes.starts_with(b"PAR1") {
        read_source(&Source::Bytes(bytes), &own_names).ok();
    }
    for format in Format::READ_BY_US {
        read_as(format, &Source::Bytes(bytes), &own_names).ok();
    }
}

/// Where a log comes from; some are read twice.
enum Source<'a> {
    File(&'a Path),
    Bytes(&'a [u8]),
}

impl<'a> Source<'a> {
    fn open(&self) -> Result<Box<dyn BufRead + 'a>, Error> {
        match self {
            Source::File(path) => {
                let file = File::open(path).map_err(|error| unreadable(&error))?;
                Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
            }
            Source::Bytes(bytes) => Ok(Box::new(Cursor::new(*bytes))),
        }
    }
}

/// A log that was read.
struct Log {
    format: Format,
    /// The name of the run, in a log of several.
    name: Option<String>,
    recorder: Recorder,
    library: Option<Library>,
    config: serde_json::Map<String, serde_json::Value>,
    warnings: Warnings,
}

impl Log {
    fn new(format: Format, recorder: Recorder, warnings: Warnings) -> Log {
        let config = serde_json::Map::new();
        Log { format, name: None, recorder, library: None, config, warnings }
    }

    /// The stages of its run, which most logs have one of.
    fn runs(self, files: &[PathBuf]) -> Vec<Run> {
        let path = || files.first().map(|path| path.display().to_string()).unwrap_or_default();
        let name = self.name.unwrap_or_else(path);
        let format = match self.library {
            Some(Library::Verl) => "verl file log",
            _ => self.format.name(),
        };
        let stages = self.recorder.finish_stages();
        let all = stages.len();
        let run = |(stage, recorded)| {
            let name = match all {
                1 => name.clone(),
                _ => format!("{name} (stage {stage} of {all})"),
            };
            let mut run = Run::new(name, files.to_vec(), format, recorded);
            run.warnings.extend(self.warnings.0.iter().cloned());
            run.library = self.library.or(run.library);
            run.config.clone_from(&self.config);
            run.has_lines = self.format.has_lines();
            run
        };
        (1..).zip(stages).map(run).collect()
    }
}

/// The runs in one file.
fn read_file(path: &Path, own_names: &OwnNames) -> Result<Vec<Run>, Error> {
    let logs = read_source(&Source::File(path), own_names).map_err(|error| error.at(path))?;
    Ok(logs.into_iter().flat_map(|log| log.runs(&[path.to_owned()])).collect())
}

fn read_source(source: &Source<'_>, own_names: &OwnNames) -> Result<Vec<Log>, Error> {
    let (head, is_whole) = head(source)?;
    let format = sniff::format(&head, is_whole, own_names)?;
    let told = match read_as(format, source, own_names) {
        // Text that only began like another format is what a program printed.
        Err(Refused { may_be_console: true, told }) => {
            match read_as(Format::Console, source, own_names) {
                Ok(logs) => return Ok(logs),
                Err(_) => told,
            }
        }
        Err(refused) => refused.told,
        Ok(logs) => return Ok(logs),
    };
    Err(told.unwrap_or_else(|| sniff::unknown_format(&head)))
}

/// How much of a file is read to see what it is.
const HEAD: u64 = 1 << 18;

/// The beginning of a log, and whether that is all.
fn head(source: &Source<'_>) -> Result<(Vec<u8>, bool), Error> {
    let mut head = Vec::new();
    let read = source.open()?.take(HEAD).read_to_end(&mut head);
    read.map_err(|error| unreadable(&error))?;
    let is_whole = (head.len() as u64) < HEAD;
    Ok((head, is_whole))
}

/// Why a log is not of a format.
struct Refused {
    may_be_console: bool,
    /// What is wrong with it, where it must be of that format.
    told: Option<Error>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused { may_be_console: false, told: Some(error) }
    }
}

fn read_as(format: Format, source: &Source<'_>, own_names: &OwnNames) -> Result<Vec<Log>, Refused> {
    let (mut to, mut warnings) = (Recorder::new(own_names.clone()), Warnings::default());
    // Text is written in the order of training.
    to = if format.has_lines() { to.in_stages() } else { to };
    let mut is_verl = false;
    let mut config = serde_json::Map::new();
    match format {
        Format::Wandb => config = wandb::read(&mut *source.open()?, &mut to, &mut warnings)?,
        Format::Parquet => parquet::read(source, &mut to)?,
        Format::TensorBoard => tensorboard::read(&mut *source.open()?, &mut to, &mut warnings)?,
        Format::TrainerState | Format::JsonList => {
            if !document::history(&mut *source.open()?, &mut to, &mut warnings)? {
                let told = Some(Error::new("begins like JSON, but other text follows"));
                return Err(Refused { may_be_console: true, told });
            }
        }
        Format::JsonLines => {
            let found = json_lines::read(&mut *source.open()?, &mut to, &mut warnings)?;
            if found.broken > found.objects {
                let (broken, all) = (found.broken, found.broken + found.objects);
                let told = format!("{broken} of {all} lines are no JSON objects");
                return Err(Refused { may_be_console: true, told: Some(Error::new(told)) });
            }
            is_verl = found.is_verl;
        }
        Format::Summary => {
            if !document::summary(&mut *source.open()?, &mut to)? {
                let told = Some(Error::new("begins like a JSON object and is none: is it cut?"));
                return Err(Refused { may_be_console: true, told });
            }
            warnings.0.push("one row: only levels and identities can be judged".to_owned());
        }
        Format::Csv => {
            let runs = csv::read(&mut *source.open()?, own_names, &mut warnings)?;
            let log = |(name, recorder)| {
                let log = Log::new(format, recorder, warnings.clone());
                Log { name, ..log }
            };
            return Ok(runs.into_iter().map(log).collect());
        }
        Format::Console => {
            if console::read(&mut *source.open()?, &mut to, &mut warnings)? == 0 {
                return Err(Refused { may_be_console: false, told: None });
            }
        }
    }
    let log = Log::new(format, to, warnings);
    Ok(vec![Log { config, library: is_verl.then_some(Library::Verl), ..log }])
}

fn unreadable(error: &std::io::Error) -> Error {
    Error::new(format!("cannot be read: {error}"))
}

/// What a reader of the report should know of the log.
#[derive(Clone, Default)]
struct Warnings(Vec<String>);

impl Warnings {
    fn cut(&mut self, is_cut: bool) {
        if is_cut {
            self.0.push("the log is cut: its last row is left out".to_owned());
        }
    }

    fn broken(&mut self, count: usize, first: usize, expected: &str) {
        match count {
            0 => {}
            1 => self.0.push(format!("line {first} is left out: expected {expected}")),
            _ => {
                let message = format!("{count} lines are left out, line {first} first");
                self.0.push(format!("{message}: expected {expected}"));
            }
        }
    }

    fn too_long(&mut self, count: usize) {
        if count > 0 {
            self.0.push(format!("{count} lines of more than 16 MiB are left out"));
        }
    }
}
