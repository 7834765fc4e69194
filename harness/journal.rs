//! The journal: the case in flight is on disk before a component runs on it, so that a run that is
//! killed in the middle of a call loses nothing. The next run of the component begins with it.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::case_file::{self, CaseFile, found_folder};
use crate::contract::Contract;
use crate::error::Error;
use crate::place::Place;
use crate::record::Record;
use crate::yaml;

/// The open journal of one component at one place; its file goes when the run ends.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
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
        let name = format!("{}{}.yaml", prefix(component, place), std::process::id());
        let path = folder.join(name);
        let file = File::create(&path).map_err(|error| Error::io("write", &path, &error))?;
        let text = case_file::head(C::ID, None, Some(component), Some(place), options);
        Ok(Journal { path, file, head: text.len(), longest: 0, text })
    }

    /// Puts a case on disk. The file is one valid case file at every moment but this one.
    ///
    /// # Errors
    /// The disk is full, say.
    pub(crate) fn note<R: Record>(&mut self, case: &R) -> Result<(), Error> {
        self.text.truncate(self.head);
        yaml::write_record(&mut self.text, case);
        // Blank lines cover what a longer case left behind; no truncation, no second system call.
        let length = self.text.len();
        self.text.extend(std::iter::repeat_n('\n', self.longest.saturating_sub(length)));
        self.longest = self.longest.max(length);
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| self.file.write_all(self.text.as_bytes()))
            .map_err(|error| Error::io("write", &self.path, &error))
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
/// taken away. A journal whose process still runs is left alone.
pub(crate) fn left_behind<C: Contract>(
    corpora: &Path,
    component: &str,
    place: Place,
) -> Vec<CaseFile<C>> {
    let prefix = prefix(component, place);
    let Ok(entries) = fs::read_dir(found_folder(corpora, C::ID)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let process = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".yaml"));
        let Some(process) = process.and_then(|number| number.parse::<i32>().ok()) else { continue };
        if is_running(process) {
            continue;
        }
        cases.extend(CaseFile::read(&path).ok());
        let _ = fs::remove_file(&path);
    }
    cases
}

#[cfg(unix)]
fn is_running(process: i32) -> bool {
    let own = i32::try_from(std::process::id()) == Ok(process);
    let pid = rustix::process::Pid::from_raw(process);
    own || pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

#[cfg(not(unix))]
fn is_running(process: i32) -> bool {
    i32::try_from(std::process::id()) == Ok(process)
}
