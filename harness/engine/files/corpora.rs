//! The corpora: regressions that are kept for ever, and what runs found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::files::case_file::CaseFile;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::value::error::Error;

/// `CORPORA/CONTRACT/found`: what runs found; ignored by git.
pub fn found_folder(corpora: &Path, contract: &str) -> PathBuf {
    corpora.join(contract).join("found")
}

/// Makes the `found` folder, with a file that keeps git out of it.
///
/// # Errors
/// It cannot be written.
pub fn make_found_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, &error))?;
    let ignore = folder.join(".gitignore");
    if ignore.exists() {
        return Ok(());
    }
    fs::write(&ignore, "*\n").map_err(|error| Error::io("write", &ignore, &error))
}

/// `CORPORA/CONTRACT/regressions`: what is kept for ever, each with its reason.
pub fn regressions_folder(corpora: &Path, contract: &str) -> PathBuf {
    corpora.join(contract).join("regressions")
}

/// A regression: the name of its file, and what it says.
pub(crate) type Regression = (String, CaseFile);

/// The regressions of a contract: those in the corpora folder, then its own.
///
/// # Errors
/// One of them cannot be read, or lies where none is looked for.
pub fn regressions(
    contract: &'static dyn AnyContract,
    corpora: Option<&Path>,
) -> Result<Vec<Regression>, Error> {
    let mut cases = corpora.map_or(Ok(Vec::new()), |corpora| kept(contract, corpora))?;
    cases.extend(own(contract)?);
    Ok(cases)
}

/// The regressions of a contract in a corpora folder.
///
/// # Errors
/// One of them cannot be read, or lies where none is looked for.
pub(crate) fn kept(
    contract: &'static dyn AnyContract,
    corpora: &Path,
) -> Result<Vec<Regression>, Error> {
    let mut cases = Vec::new();
    let folder = regressions_folder(corpora, contract.id());
    no_stray(corpora, contract.id(), &folder)?;
    if folder.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(cases);
    }
    for path in case_files(&folder)? {
        // In a folder of its own it has the name of that folder too.
        let name = path.strip_prefix(&folder).unwrap_or(&path).with_extension("");
        let parts: Vec<String> =
            name.components().map(|part| part.as_os_str().display().to_string()).collect();
        cases.push((parts.join("-"), CaseFile::read_of(contract, &path)?));
    }
    Ok(cases)
}

/// Refuses case files of a contract that lie beside their folder or above, where they would be kept
/// and never checked.
fn no_stray(corpora: &Path, contract: &str, folder: &Path) -> Result<(), Error> {
    let is_its = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let named = text.lines().find_map(|line| line.strip_prefix("contract:"));
        named.is_some_and(|name| name.trim() == contract)
    };
    let above = [corpora.join(contract), corpora.to_owned()];
    match above.iter().flat_map(|folder| yaml_files(folder)).find(is_its) {
        Some(stray) => {
            let why = format!("this case is never checked: move it to {}", folder.display());
            Err(Error::new(why).at(&stray))
        }
        None => Ok(()),
    }
}

/// The regressions that come with a contract, which are parsed once.
fn own(contract: &'static dyn AnyContract) -> Result<Vec<Regression>, Error> {
    static PARSED: Mutex<BTreeMap<&str, Vec<Regression>>> = Mutex::new(BTreeMap::new());
    let mut parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cases) = parsed.get(contract.id()) {
        return Ok(cases.clone());
    }
    let mut cases = Vec::new();
    for (name, text) in contract.regressions() {
        let case = CaseFile::parse_of(contract, text).map_err(|error| error.at(Path::new(name)))?;
        cases.push(((*name).to_owned(), case));
    }
    parsed.insert(contract.id(), cases.clone());
    Ok(cases)
}

/// The case files of a folder and of those inside, sorted: regular files that end in `.yaml` or
/// `.yml`. Each folder counts once, however many links lead to it.
///
/// # Errors
/// A folder cannot be read, or a link leads nowhere.
pub fn case_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut files, mut open, mut seen) = (Vec::new(), vec![folder.to_owned()], BTreeSet::new());
    while let Some(folder) = open.pop() {
        let failed = |error: std::io::Error| Error::io("read", &folder, &error);
        if !seen.insert(folder.canonicalize().map_err(failed)?) {
            continue;
        }
        let mut inside = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                inside.push(path);
            } else if is_yaml(&path) {
                let file = path.metadata().map_err(|error| Error::io("read", &path, &error))?;
                files.extend(file.is_file().then_some(path)); // a FIFO has no end
            }
        }
        // The first of them is the next.
        inside.sort_by(|a, b| b.cmp(a));
        open.extend(inside);
    }
    files.sort();
    Ok(files)
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// The regular YAML files of a folder by name, none where there is no folder.
pub fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| is_yaml(path) && path.is_file());
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    paths
}
