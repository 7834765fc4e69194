//! The one error: shakedown could not run. What a component does wrong is a finding, not an error.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why shakedown could not run, with the place in the input where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    path: Option<PathBuf>,
    line: Option<(usize, usize)>,
    within: Vec<String>,
    message: String,
}

impl Error {
    /// An error that says `message`.
    pub fn new(message: impl Into<String>) -> Error {
        Error { path: None, line: None, within: Vec::new(), message: message.into() }
    }

    /// The same, in the file at `path`.
    pub fn at(mut self, path: &Path) -> Error {
        self.path = Some(path.to_path_buf());
        self
    }

    /// The same, at a line and a column, both counted from 1.
    pub fn line(mut self, line: usize, column: usize) -> Error {
        self.line = Some((line, column));
        self
    }

    /// The line and the column, where they are known.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.line
    }

    /// The same, in the part named `part`: ``component `grpo` ``.
    pub fn within(mut self, part: impl Into<String>) -> Error {
        self.within.insert(0, part.into());
        self
    }

    /// A failed file operation: `cannot read PATH: …`.
    pub fn io(doing: &str, path: &Path, error: &std::io::Error) -> Error {
        Error::new(format!("cannot {doing} {}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}", path.display())?;
            if let Some((line, column)) = self.line {
                write!(f, ":{line}:{column}")?;
            }
            f.write_str(": ")?;
        }
        for part in &self.within {
            write!(f, "{part}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Longer values are cut where a message quotes them.
const LONGEST_QUOTE: usize = 60;

/// The beginning of a value that may be long.
pub fn cut(value: &str) -> String {
    match value.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Longer lists of known names are not printed.
const NAMES_LISTED: usize = 15;

/// ``unknown KIND `NAME`, expected one of `A`, `B`; did you mean `A`?``
pub fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    let name = cut(name);
    match known {
        [one] => format!("unknown {kind} `{name}`, expected `{one}`"),
        _ if known.len() > NAMES_LISTED => format!("unknown {kind} `{name}`{near}"),
        _ => format!("unknown {kind} `{name}`, expected one of `{}`{near}", known.join("`, `")),
    }
}

/// `; did you mean `X`?` for the known name nearest to `name`, or nothing where none is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let lowered = name.to_lowercase().replace('_', "-");
    known
        .into_iter()
        .map(|one| (strsim::jaro_winkler(&lowered, &one.to_lowercase().replace('_', "-")), one))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(String::new(), |(_, one)| format!("; did you mean `{one}`?"))
}
