//! The journal: each case is on disk before a component runs on it, so that a run that is killed
//! in the middle of a call loses nothing. The next run of the component begins with that case.

use std::fs::{self, File, TryLockError};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use crate::contract::component::{Call, Component, Failure, Gradients, Returned};
use crate::contract::erased::AnyContract;
use crate::contract::options::AnyOptions;
use crate::files::case_file::{self, CaseFile};
use crate::files::corpora::{found_folder, make_found_folder, yaml_files};
use crate::value::error::Error;
use crate::value::place::Place;
use crate::value::record::AnyRecord;
use crate::value::yaml;

/// A component whose cases are put into a journal, where there is one, before it is called.
pub struct Journaled {
    component: Box<dyn Component>,
    /// The journal of the place at which it is checked.
    pub(crate) journal: Option<Journal>,
}

impl Journaled {
    /// The component, without a journal yet.
    pub(crate) fn new(component: Box<dyn Component>) -> Self {
        Journaled { component, journal: None }
    }

    /// Whether every case so far was put on disk.
    ///
    /// # Errors
    /// The disk is full, say.
    pub(crate) fn check_journal(&self) -> Result<(), Error> {
        self.journal.as_ref().map_or(Ok(()), Journal::check)
    }
}

impl Component for Journaled {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        if let Some(journal) = &mut self.journal {
            journal.note(&**call.case);
        }
        self.component.call(call)
    }

    fn prepare(&mut self, place: Place) -> Result<Option<String>, Error> {
        self.component.prepare(place)
    }

    fn home(&self) -> Place {
        self.component.home()
    }

    fn gradients(&self, place: Place) -> Gradients {
        self.component.gradients(place)
    }

    fn reads(&self, option: &str) -> bool {
        self.component.reads(option)
    }
}

/// The open journal of one component at one place; its file goes when the run ends. The file is
/// locked while its run lives, which says more than a process id: containers use those again.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    failed: Option<Error>,
    head: usize,
    longest: usize,
    text: String,
    bytes: Vec<u8>,
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
    pub(crate) fn open(
        contract: &dyn AnyContract,
        corpora: &Path,
        component: &str,
        place: Place,
        options: &dyn AnyOptions,
    ) -> Result<Journal, Error> {
        let folder = found_folder(corpora, contract.id());
        make_found_folder(&folder)?;
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
        let text = case_file::head(contract.id(), None, Some(component), Some(place), options);
        let (head, bytes) = (text.len(), Vec::new());
        Ok(Journal { path, file, failed: None, head, longest: 0, text, bytes })
    }

    /// Puts a case on disk. The file is one valid case file at every moment but this one.
    fn note(&mut self, case: &dyn AnyRecord) {
        self.text.truncate(self.head);
        yaml::write_record(&mut self.text, case);
        // Blank lines cover what a longer case left behind; no truncation, no second system call.
        self.longest = self.longest.max(self.text.len());
        self.bytes.clear();
        self.bytes.extend_from_slice(self.text.as_bytes());
        self.bytes.resize(self.longest, b'\n');
        let written = self.file.rewind().and_then(|()| self.file.write_all(&self.bytes));
        if let Err(error) = written {
            self.failed = Some(Error::io("write", &self.path, &error));
        }
    }

    /// Whether every case so far was put on disk.
    ///
    /// # Errors
    /// The disk is full, say.
    fn check(&self) -> Result<(), Error> {
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
pub(crate) fn left_behind(
    contract: &'static dyn AnyContract,
    corpora: &Path,
    component: &str,
    place: Place,
) -> Vec<CaseFile> {
    let prefix = prefix(component, place);
    let mut cases = Vec::new();
    for path in yaml_files(&found_folder(corpora, contract.id())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if !name.starts_with(&prefix) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            continue;
        }
        // Two names may begin alike, and a run may have ended before its first call.
        let case = CaseFile::read_of(contract, &path).ok();
        let case = case.filter(|case| case.component.as_deref() == Some(component));
        if let Some(case) = case.filter(|case| case.place == Some(place)) {
            cases.push(case);
            let _ = fs::remove_file(&path);
        }
    }
    cases
}
