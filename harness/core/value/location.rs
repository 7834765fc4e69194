//! Where a component is declared and written: a file and a line, for what marks lines there.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

/// A line of a manifest or of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// The file from the root of its repository, names separated by `/`, as services that
    /// annotate code want it; where it is in no repository, its path as given.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}

impl Location {
    /// A line of a source file, whose path is absolute; where it is in no repository, its path is
    /// that from the working folder, if it is below.
    pub fn of_source(path: &Path, line: usize) -> Location {
        let here = std::env::current_dir().and_then(|folder| folder.canonicalize());
        let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let below = here.ok().and_then(|here| absolute.strip_prefix(here).ok().map(Path::to_owned));
        Location::new(below.as_deref().unwrap_or(&absolute), line)
    }

    /// A line of the file at a path.
    pub fn new(path: &Path, line: usize) -> Location {
        let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let root = absolute.ancestors().skip(1).find(|folder| folder.join(".git").exists());
        let from_root = root.and_then(|root| absolute.strip_prefix(root).ok());
        let parts = from_root.unwrap_or(path).components();
        let names = parts.filter(|part| *part != Component::CurDir).map(|part| match part {
            Component::RootDir => "".into(),
            part => part.as_os_str().to_string_lossy(),
        });
        Location { file: names.collect::<Vec<_>>().join("/"), line }
    }
}
