//! Files that are put where none is: what is there already is never written over.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use shakedown_core::value::error::Error;

/// A file that shall be there.
pub(super) struct File {
    /// Where, from the training repository.
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// What to add by hand where another file stands in its place.
    pub(super) by_hand: String,
    /// What is edited, where `text` is the file that is there with an addition; empty for others.
    pub(super) change: String,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was not there.
    Written,
    /// It was there, and has the addition now.
    Changed,
    /// It was there with this very text.
    Same,
    /// It was there with another text, and was left alone.
    Kept,
}

impl File {
    /// A new file.
    pub(super) fn new(path: impl Into<PathBuf>, text: String, by_hand: String) -> File {
        File { path: path.into(), text, by_hand, change: String::new() }
    }

    /// Puts the file there.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub(super) fn put(&self, dir: &Path) -> Result<Outcome, Error> {
        let path = dir.join(&self.path);
        let failed = |error: std::io::Error| Error::io("write", &path, &error);
        // Not `exists`: it is false for a link that leads nowhere.
        if path.symlink_metadata().is_ok() {
            return match fs::read(&path) {
                Ok(there) if there == self.text.as_bytes() => Ok(Outcome::Same),
                Ok(_) if !self.change.is_empty() => {
                    fs::write(&path, &self.text).map_err(failed)?;
                    Ok(Outcome::Changed)
                }
                _ => Ok(Outcome::Kept),
            };
        }
        let folder = path.parent().expect("a file is in a folder");
        fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, &error))?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        file.write_all(self.text.as_bytes()).map_err(failed)?;
        Ok(Outcome::Written)
    }
}
