//! The journal: each case is on disk before a component runs on it, so that a run that is killed
//! in the middle of a call loses nothing. The next run of the component begins with that case.

use std::fs::{self, File, TryLockError};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use crate::files::case_file;
use crate::files::case_file::CaseFile;
use crate::files::corpora::found_folder;
use crate::contract::Contract;
use crate::value::error::Error;
use crate::files::corpora::yaml_files;
use crate::value::place::Place;
use crate::value::record::Record;
use crate::value::yaml;

/// The open journal of one component at one place; its file goes when the run ends. The file is
/// locked while its run lives, which says more than a process id: containers use those again.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    failed: Option<Error>,
    head: usize,
    longest: usize,
    text: String,
}

fn prefix(component: &str, place: Place) -> String {
    let slug = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    format!("in-flight-{}-{}-", slug(component), slug(&place.to_string()))
}

impl Journal {
    /// Opens the journal of a component in the corpora folder. All cases share its options.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn open<C: Contract>(
        corpora: &Path,
        component: &str,
        place: Place,
        options: &C::Options,
    ) -> Result<Journal, Error> {
        let folder = found_folder(corpora, C::ID);
        case_file::make_found_folder(&folder)?;
        let failed = |error: std::io::Error| Error::io("write in", &folder, &error);
        let (file, path) = tempfile::Builder::new()
            .prefix(&prefix(component, place))
            .suffix(".yaml")
            .tempfile_in(&folder)
            .map_err(failed)?
            .keep()
            .map_err(|error| failed(error.error))?;
        // Some network drives know no locks; two runs at a time may then share what was in flight.
        let _ = file.lock();
        let text = case_file::head(C::ID, None, Some(component), Some(place), options);
        Ok(Journal { path, file, failed: None, head: text.len(), longest: 0, text })
    }

    /// Puts a case on disk. The file is one valid case file at every moment but this one.
    pub(crate) fn note<R: Record>(&mut self, case: &R) {
        self.text.truncate(self.head);
        yaml::write_record(&mut self.text, case);
        // Blank lines cover what a longer case left behind; no truncation, no second system call.
        let length = self.text.len();
        self.text.extend(std::iter::repeat_n('\n', self.longest.saturating_sub(length)));
        self.longest = self.longest.max(length);
        let written = self.file.rewind().and_then(|()| self.file.write_all(self.text.as_bytes()));
        if let Err(error) = written {
            self.failed = Some(Error::io("write", &self.path, &error));
        }
    }

    /// Whether every case so far was put on disk.
    ///
    /// # Errors
    /// The disk is full, say.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // A panic of our own keeps the case, as a kill does.
        if !std::thread::panicking() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The cases that were in flight when earlier runs of a component were killed; their journals are
/// taken away. The journal of a run that still lives is left alone.
pub(crate) fn left_behind<C: Contract>(
    corpora: &Path,
    component: &str,
    place: Place,
) -> Vec<CaseFile<C>> {
    let prefix = prefix(component, place);
    let mut cases = Vec::new();
    for path in yaml_files(&found_folder(corpora, C::ID)) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if !name.starts_with(&prefix) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            continue;
        }
        // Two names may begin alike, and a run may have ended before its first call.
        let case = CaseFile::<C>::read(&path).ok();
        let case = case.filter(|case| case.component.as_deref() == Some(component));
        if let Some(case) = case.filter(|case| case.place == Some(place)) {
            cases.push(case);
            let _ = fs::remove_file(&path);
        }
    }
    cases
}
