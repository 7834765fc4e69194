//! How data sets are written: each reader streams its rows.

mod json;
#[cfg(feature = "parquet")]
mod parquet;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::Value as Json;

use shakedown_core::value::error::Error;

/// Longer rows are not read.
pub(super) const LONGEST_ROW: usize = 64 << 20;

/// A row, or why it cannot be read.
pub(super) enum Item {
    /// What was read.
    Row(Json),
    /// No JSON, or too much of it.
    Bad(String),
}

/// Takes what stands at a line, or at a row where a file has no lines.
pub(super) type Take<'a> = &'a mut dyn FnMut(u64, Item);

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    JsonLines,
    JsonArray,
    Parquet,
}

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Format::JsonLines => "JSON lines",
            Format::JsonArray => "JSON",
            Format::Parquet => "parquet",
        }
    }

    /// Whether its rows stand on lines.
    pub(super) fn has_lines(self) -> bool {
        self != Format::Parquet
    }
}

/// Reads a file from its beginning to its end.
pub(super) fn read(path: &Path, take: Take<'_>) -> Result<Format, Error> {
    let open = || File::open(path).map_err(|error| Error::io("read", path, &error));
    let mut start = Vec::new();
    let head = open()?.take(4096).read_to_end(&mut start);
    head.map_err(|error| Error::io("read", path, &error))?;
    match recognised(&start).map_err(|error| error.at(path))? {
        Format::Parquet => parquet_rows(path, open()?, take).map(|()| Format::Parquet),
        format => {
            let read = json::read(BufReader::with_capacity(1 << 16, open()?), format, take);
            read.map(|()| format).map_err(|error| Error::io("read", path, &error))
        }
    }
}

/// Reads bytes that are no file: JSON only, the reader of parquet is not ours.
pub(super) fn read_bytes(bytes: &[u8], take: Take<'_>) -> Result<(), Error> {
    match recognised(bytes)? {
        Format::Parquet => Err(Error::new("expected JSON")),
        format => json::read(bytes, format, take)
            .map_err(|error| Error::new(format!("cannot read: {error}"))),
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn recognised(start: &[u8]) -> Result<Format, Error> {
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        _ if start.starts_with(b"PAR1") => Ok(Format::Parquet),
        _ if start.starts_with(b"ARROW1") || start.starts_with(&[0xff; 4]) => Err(Error::new(
            "an Arrow file, expected JSON lines or parquet: `dataset.to_parquet(…)` writes it so",
        )),
        _ if start.starts_with(&[0x1f, 0x8b]) || start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => {
            Err(Error::new("compressed, expected JSON lines or parquet: unpack it first"))
        }
        Some(b'[') => Ok(Format::JsonArray),
        Some(_) => Ok(Format::JsonLines),
        None => Err(Error::new("empty, expected JSON lines or parquet")),
    }
}

#[cfg(feature = "parquet")]
fn parquet_rows(path: &Path, file: File, take: Take<'_>) -> Result<(), Error> {
    parquet::read(file, take).map_err(|error| error.at(path))
}

#[cfg(not(feature = "parquet"))]
fn parquet_rows(path: &Path, _: File, _: Take<'_>) -> Result<(), Error> {
    const WHY: &str =
        "parquet is not built in: build with the feature `parquet`, or write JSON lines";
    Err(Error::new(WHY).at(path))
}
