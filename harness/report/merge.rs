//! Several reports as one: the shards of a run, or runs of different components.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value as Json;

use super::diagnosis::{self, Diagnosis};
use super::{ComponentReport, Report, SCHEMA, Shard};
use crate::value::error::Error;

/// Larger files are refused: a report has a few megabytes.
const LARGEST_FILE_BYTES: u64 = 256 << 20;

/// What tells a report of another schema; all else is passed over.
#[derive(Default, Deserialize)]
struct Named {
    schema: Option<Json>,
}

/// A report of components, or of what surrounds them.
#[derive(Debug)]
pub enum Either {
    /// Of components.
    Report(Report),
    /// Of runs, configurations and data sets.
    Diagnosis(Diagnosis),
}

impl Report {
    /// Reads a report that was written as JSON.
    ///
    /// # Errors
    /// It cannot be read, or is no report of this schema.
    pub fn read(path: &Path) -> Result<Report, Error> {
        match read_either(path)? {
            Either::Report(report) => Ok(report),
            Either::Diagnosis(_) => {
                let found = Json::from(diagnosis::SCHEMA);
                let why = format!("expected a report of the schema {SCHEMA}, found {found}");
                Err(Error::new(why).at(path))
            }
        }
    }
}

/// Reads a report of either kind that was written as JSON.
///
/// # Errors
/// It cannot be read, or is no report.
pub fn read_either(path: &Path) -> Result<Either, Error> {
    let failed = |error: io::Error| Error::io("read", path, &error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    within(metadata.len()).map_err(|error| error.at(path))?;
    if metadata.is_file() {
        return parse(file, path);
    }
    // It is read twice, which a pipe is not.
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    within(bytes.len() as u64).map_err(|error| error.at(path))?;
    parse(Cursor::new(bytes), path)
}

fn within(length: u64) -> Result<(), Error> {
    if length <= LARGEST_FILE_BYTES {
        return Ok(());
    }
    Err(Error::new(format!("expected at most {LARGEST_FILE_BYTES} bytes, found {length}")))
}

/// Reads a report from what has one, piece by piece.
fn parse(mut from: impl Read + Seek, path: &Path) -> Result<Either, Error> {
    let failed = |error: io::Error| Error::io("read", path, &error);
    let wrong = |schema: &str, error: serde_json::Error| {
        if error.is_io() {
            return failed(error.into());
        }
        let (line, column) = (error.line(), error.column());
        let why = error.to_string();
        let why = why.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&why);
        let why = format!("not a report of the schema {schema}: {why}");
        Error::new(why).at(path).line(line, column)
    };
    // A report of another schema is told by its name, not by its first strange key.
    let is_object = is_object(text(&mut from).map_err(failed)?).map_err(failed)?;
    let named = serde_json::from_reader(text(&mut from).map_err(failed)?);
    let named: Named = match named {
        // A list is read as if its items were the fields.
        Ok(named) if is_object => named,
        Ok(_) => Named::default(),
        Err(error) if error.is_data() => Named::default(),
        Err(error) => return Err(wrong(SCHEMA, error)),
    };
    let text = text(&mut from).map_err(failed)?;
    match named.schema.as_ref().and_then(Json::as_str) {
        Some(SCHEMA) => {
            let report = serde_json::from_reader(text).map_err(|error| wrong(SCHEMA, error))?;
            Ok(Either::Report(report))
        }
        Some(diagnosis::SCHEMA) => {
            let told = serde_json::from_reader(text);
            Ok(Either::Diagnosis(told.map_err(|error| wrong(diagnosis::SCHEMA, error))?))
        }
        _ => {
            let found = named.schema.as_ref().map_or("none".to_owned(), Json::to_string);
            let why = format!("expected a report of the schema {SCHEMA}, found {found}");
            Err(Error::new(why).at(path))
        }
    }
}

/// The text from its beginning, without a byte-order mark, and no more of it than a report has.
fn text(from: &mut (impl Read + Seek)) -> io::Result<impl BufRead> {
    from.rewind()?;
    let mut text = BufReader::new(from.take(LARGEST_FILE_BYTES));
    if text.fill_buf()?.starts_with("\u{feff}".as_bytes()) {
        text.consume("\u{feff}".len());
    }
    Ok(text)
}

/// Whether a text of JSON is an object.
fn is_object(text: impl BufRead) -> io::Result<bool> {
    let first = text.bytes().find(|byte| !matches!(byte, Ok(byte) if byte.is_ascii_whitespace()));
    Ok(first.transpose()? == Some(b'{'))
}

/// One report of several, each with the file that it was read from.
///
/// Shards come in the order of the run that they are parts of, other reports in the order given.
///
/// # Errors
/// They are of different versions or seeds, a component and place is in two of them, or a shard is
/// missing, given twice, or of another run.
///
/// # Panics
/// If there are none.
pub fn merge(mut reports: Vec<(PathBuf, Report)>) -> Result<Report, Error> {
    belong_together(&reports)?;
    let shards = reports[0].1.shard.map(Shard::of);
    if let Some(of) = shards {
        reports.sort_by_key(|(_, report)| report.shard.map(Shard::index));
        complete(&reports, of)?;
    }
    let (_, Report { version, seed, .. }) = &reports[0];
    let (version, seed) = (version.clone(), *seed);
    // Shards run at the same time.
    let elapsed_ms = reports.iter().map(|(_, report)| report.elapsed_ms).max().unwrap_or(0);
    let mut parts: Vec<_> =
        reports.into_iter().map(|(_, report)| report.components.into_iter()).collect();
    let mut components: Vec<ComponentReport> = Vec::new();
    if shards.is_some() {
        // As they were dealt out: the first of each, then the second of each.
        loop {
            let before = components.len();
            components.extend(parts.iter_mut().filter_map(Iterator::next));
            if components.len() == before {
                break;
            }
        }
    } else {
        components.extend(parts.into_iter().flatten());
    }
    let components = components.into_iter().map(ComponentReport::harmless).collect();
    Ok(Report { schema: SCHEMA.to_owned(), version, seed, shard: None, elapsed_ms, components })
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

/// All reports must be alike, and nothing may be in two of them.
fn belong_together(reports: &[(PathBuf, Report)]) -> Result<(), Error> {
    let (first_path, first) = &reports[0];
    for (index, (path, report)) in reports.iter().enumerate() {
        for ((what, expected), (_, found)) in facts(first).into_iter().zip(facts(report)) {
            if found != expected {
                let first = first_path.display();
                let why = format!("{what}: expected {expected} as in {first}, found {found}");
                return Err(Error::new(why).at(path));
            }
        }
        for (earlier_path, earlier) in &reports[..index] {
            let earlier_path = earlier_path.display();
            if let (Some(shard), true) = (report.shard, report.shard == earlier.shard) {
                let why = format!("the shard {shard} is given twice, first in {earlier_path}");
                return Err(Error::new(why).at(path));
            }
            let twice = report.components.iter().find(|component| {
                let mut all = earlier.components.iter();
                all.any(|one| (&one.name, one.place) == (&component.name, component.place))
            });
            if let Some(component) = twice {
                let title = component.title();
                let why = format!("`{title}` is given twice, first in {earlier_path}");
                return Err(Error::new(why).at(path));
            }
        }
    }
    Ok(())
}

/// What all parts of a run have in common.
fn facts(report: &Report) -> [(&'static str, String); 3] {
    let shards = report.shard.map_or("none".to_owned(), |shard| shard.of().to_string());
    [("version", report.version.clone()), ("seed", report.seed.to_string()), ("shards", shards)]
}

/// Missing shards that are named; more are counted.
const NAMED: usize = 8;

/// Every shard must be there, each with its share.
fn complete(reports: &[(PathBuf, Report)], of: usize) -> Result<(), Error> {
    let there =
        |index: usize| reports.iter().any(|(_, r)| r.shard.is_some_and(|s| s.index() == index));
    let missing = of - reports.len();
    if missing > 0 {
        let named = (1..=of).filter(|index| !there(*index)).take(NAMED);
        let mut named: Vec<String> = named.map(|index| format!("{index}/{of}")).collect();
        if missing > NAMED {
            named.push(format!("and {} more", missing - NAMED));
        }
        return Err(Error::new(format!("missing shards: {}", named.join(", "))));
    }
    let found: Vec<usize> = reports.iter().map(|(_, report)| report.components.len()).collect();
    let all = found.iter().sum();
    let shards = reports.iter().filter_map(|(_, report)| report.shard);
    let expected: Vec<usize> = shards.map(|shard| shard.share(all)).collect();
    if found == expected {
        return Ok(());
    }
    let list =
        |counts: Vec<usize>| counts.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    Err(Error::new(format!(
        "the shards are not of one run: expected {} components and places in them, found {}",
        list(expected),
        list(found)
    )))
}
