//! Reports that were written as JSON, read again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value as Json;
use shakedown_core::value::error::Error;
use shakedown_engine::report::{Report, SCHEMA};
use shakedown_lint::report::{Diagnosis, SCHEMA as DIAGNOSIS};

/// Larger files are refused: a report has a few megabytes.
const LARGEST_FILE_BYTES: u64 = 256 << 20;

/// The schema of a report; all other fields are ignored.
#[derive(Default, Deserialize)]
struct Named {
    schema: Option<Json>,
}

/// A report of components, or of what surrounds them.
#[derive(Debug)]
pub(super) enum Either {
    /// Of components.
    Report(Report),
    /// Of runs, configurations and data sets.
    Diagnosis(Diagnosis),
}

/// Reads a report of either kind that was written as JSON.
///
/// # Errors
/// It cannot be read, or is no report.
pub(super) fn read(path: &Path) -> Result<Either, Error> {
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
    // The name of the schema comes first: an error names it, and not the first unknown key.
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
        Some(DIAGNOSIS) => {
            let told = serde_json::from_reader(text);
            Ok(Either::Diagnosis(told.map_err(|error| wrong(DIAGNOSIS, error))?))
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
