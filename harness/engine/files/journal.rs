//! The journal: each case is in a file before a component runs on it, so that a run that is killed
//! in the middle of a call loses nothing. The next run of the component begins with that case.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use memmap2::MmapMut;
use ndarray::ArrayD;
use serde::Deserialize;

use crate::files::case_file::{self, CaseFile};
use crate::files::corpora::{found_folder, make_found_folder};
use shakedown_core::contract::component::{Call, Component, Failure, Gradients, Returned};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::{Shared, Value};
use shakedown_core::value::text::fnv1a;
use shakedown_core::value::yaml;

/// A component whose cases are put into a journal, where there is one, before it is called.
pub struct Journaled {
    component: Box<dyn Component>,
    /// The journal of the place at which it is checked.
    pub journal: Option<Journal>,
}

impl Journaled {
    /// The component, without a journal yet.
    pub fn new(component: Box<dyn Component>) -> Self {
        Journaled { component, journal: None }
    }

    /// Whether every case so far was put on disk.
    ///
    /// # Errors
    /// The disk is full, say.
    pub fn check_journal(&self) -> Result<(), Error> {
        self.journal.as_ref().map_or(Ok(()), Journal::check)
    }
}

impl Component for Journaled {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        if let Some(journal) = &mut self.journal {
            journal.note(call.case);
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

    fn notes(&self) -> Vec<String> {
        self.component.notes()
    }

    fn source(&self) -> Option<(PathBuf, usize)> {
        self.component.source()
    }

    fn shows(&mut self, invariant: &str) {
        self.component.shows(invariant);
    }

    fn begin_anew(&mut self) -> bool {
        self.component.begin_anew()
    }

    fn reads(&self, option: &str) -> bool {
        self.component.reads(option)
    }
}

/// The open journal of one component at one place; its file goes when the run ends. The file is
/// locked while its run lives, which says more than a process id: containers use those again.
///
/// The file is memory: what stands there outlives the process, and a call costs no system call.
/// First come what a case file says before its case and the length of that, then the length of the
/// values of the case in flight and these.
pub struct Journal {
    path: PathBuf,
    file: File,
    memory: MmapMut,
    /// Where the length of the case stands.
    case_at: usize,
    /// The case that stands there.
    noted: Option<Shared>,
    bytes: Vec<u8>,
    failed: Option<Error>,
}

/// What a file has room for at first; it grows with its cases.
const FIRST_BYTES: usize = 1 << 14;

/// The name of what a journal ends with.
const SUFFIX: &str = ".journal";

/// What it ends with before it is locked.
const NEW: &str = ".new";

/// Characters of a component's name in that of its journals at the most: no file has a long name.
const LONGEST_SLUG: usize = 40;

/// What the names of a component's journals at a place begin with. Other components whose names
/// look alike have other ones.
fn prefix(component: &str, place: Place) -> String {
    let slug = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let short: String = slug(component).chars().take(LONGEST_SLUG).collect();
    let hash = fnv1a(component.bytes());
    format!("in-flight-{short}-{hash:08x}-{}-", slug(&place.to_string()))
}

impl Journal {
    /// Opens the journal of a component in the corpora folder. All cases share its options.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open(
        contract: &dyn AnyContract,
        corpora: &Path,
        component: &str,
        place: Place,
        options: &dyn AnyOptions,
    ) -> Result<Journal, Error> {
        let folder = found_folder(corpora, contract.id());
        make_found_folder(&folder)?;
        let failed = |error: std::io::Error| Error::io("write in", &folder, &error);
        let (mut file, path) = tempfile::Builder::new()
            .prefix(&prefix(component, place))
            .suffix(NEW)
            .tempfile_in(&folder)
            .map_err(failed)?
            .keep()
            .map_err(|error| failed(error.error))?;
        // Some network drives know no locks; two runs at a time may then share what was in flight.
        let _ = file.lock();
        // Only now has it the name of a journal: one without a lock is that of a dead run.
        let locked = path.with_extension(&SUFFIX[1..]);
        fs::rename(&path, &locked).map_err(failed)?;
        let path = locked;
        let head = case_file::head(contract.id(), None, Some(component), Some(place), options);
        let memory = grown(&mut file, FIRST_BYTES + head.len()).map_err(failed)?;
        let (noted, bytes, failed) = (None, Vec::new(), None);
        let mut journal = Journal { path, file, memory, case_at: 0, noted, bytes, failed };
        journal.put(0, head.as_bytes());
        journal.case_at = LENGTH + head.len();
        Ok(journal)
    }

    /// Puts a case into the file.
    fn note(&mut self, case: &Shared) {
        if self.noted.as_ref().is_some_and(|noted| Arc::ptr_eq(noted, case)) {
            return;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        case.each(&mut |name, value| {
            let entry = (name, value);
            let written = postcard::to_extend(&entry, std::mem::take(&mut bytes));
            bytes = written.expect("values can be written to memory");
        });
        let needed = self.case_at + LENGTH + bytes.len();
        if needed > self.memory.len() {
            match grown(&mut self.file, needed.next_power_of_two()) {
                Ok(memory) => self.memory = memory,
                Err(error) => {
                    self.failed = Some(Error::io("write", &self.path, &error));
                    return;
                }
            }
        }
        self.put(self.case_at, &bytes);
        self.bytes = bytes;
        self.noted = Some(Shared::clone(case));
    }

    /// Puts bytes and their length there. A length is never that of other bytes.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        let start = at + LENGTH;
        self.memory[at..start].fill(0);
        fence(Ordering::SeqCst);
        self.memory[start..start + bytes.len()].copy_from_slice(bytes);
        fence(Ordering::SeqCst);
        self.memory[at..start].copy_from_slice(&bytes.len().to_le_bytes());
    }

    /// Whether every case so far was put into the file.
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

/// The bytes of a length.
const LENGTH: usize = size_of::<usize>();

/// The memory of a file that is made this long. Zeros are written, so that a full disk is an error
/// here and not a signal later.
#[expect(unsafe_code, reason = "files as memory")]
fn grown(file: &mut File, length: usize) -> std::io::Result<MmapMut> {
    let before = file.seek(std::io::SeekFrom::End(0))?;
    file.write_all(&vec![0; length.saturating_sub(before as usize)])?;
    // SAFETY: others that shorten the file could end this process. It is locked, its name is
    // random, and what reads it only does once it can lock it.
    unsafe { MmapMut::map_mut(&*file) }
}

/// A value as a journal has it: as [`ValueRef`](shakedown_core::value::record::ValueRef) was
/// written.
#[derive(Deserialize)]
enum Noted {
    Float(ArrayD<f64>),
    Int(ArrayD<i64>),
    Bool(ArrayD<bool>),
    Text(ArrayD<String>),
    TextOrNull(ArrayD<Option<String>>),
}

impl From<Noted> for Value {
    fn from(noted: Noted) -> Value {
        match noted {
            Noted::Float(array) => Value::Float(array),
            Noted::Int(array) => Value::Int(array),
            Noted::Bool(array) => Value::Bool(array),
            Noted::Text(array) => Value::Text(array.mapv(Some)),
            Noted::TextOrNull(array) => Value::Text(array),
        }
    }
}

/// The case that stands in the bytes of a journal, where there is one.
fn read(contract: &'static dyn AnyContract, bytes: &[u8]) -> Option<CaseFile> {
    let (head, rest) = split_length(bytes)?;
    let (mut noted, _) = split_length(rest)?;
    let mut values: HashMap<String, Value> = HashMap::new();
    while !noted.is_empty() {
        let (name, value): (String, Option<Noted>);
        ((name, value), noted) = postcard::take_from_bytes(noted).ok()?;
        values.extend(value.map(|value| (name, value.into())));
    }
    let case = contract.case(&mut |name| values.remove(name)).ok()?;
    let mut text = String::from_utf8(head.to_owned()).ok()?;
    yaml::write_record(&mut text, &*case);
    CaseFile::parse_of(contract, &text).ok()
}

/// The bytes behind a length, and the rest; nothing where there are none.
fn split_length(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::from_le_bytes(*length);
    (length > 0).then(|| rest.split_at_checked(length))?
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
    let entries = fs::read_dir(found_folder(corpora, contract.id()));
    let mut paths: Vec<PathBuf> =
        entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if !name.starts_with(&prefix) || !name.ends_with(SUFFIX) {
            continue;
        }
        if !path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            continue;
        }
        let case = fs::read(&path).ok().and_then(|bytes| read(contract, &bytes));
        let is_ours = |case: &CaseFile| {
            case.component.as_deref() == Some(component) && case.place == Some(place)
        };
        // A run may have ended before its first call; nothing is lost with its journal.
        if case.as_ref().is_none_or(is_ours) {
            cases.extend(case);
            let _ = fs::remove_file(&path);
        }
    }
    cases
}
