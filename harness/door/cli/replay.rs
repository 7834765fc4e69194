//! `shakedown replay` and `shakedown shrink`: kept cases against today's components.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Done, Stopped, output};
use crate::contract::component::Component as _;
use crate::contract::invariant::AnyInvariant;
use crate::contract::probe::Stop;
use crate::engine::shrink::shrink as smallest;
use crate::engine::subject::{Broken, Subject};
use crate::files::case_file::CaseFile;
use crate::files::corpora::yaml_files;
use crate::files::manifest::Manifest;
use crate::host::builtin::Builtin;
use crate::report::ExitCode;
use crate::value::error::Error;
use crate::value::place::Place;
use crate::value::text::one_line;

pub(super) fn run(paths: &[PathBuf], manifest: Option<&Path>, prune: bool) -> Done {
    let manifest = manifest.map(Manifest::read).transpose()?;
    let (mut to, _) = output();
    let (mut failing, mut spoken) = (false, false);
    for path in &case_files(paths)? {
        let verdicts = verdicts(path, manifest.as_ref())?;
        let fixed = verdicts.iter().all(|(_, verdict)| matches!(verdict, Verdict::Fixed));
        for (who, verdict) in verdicts {
            failing |= matches!(verdict, Verdict::StillFailing(_));
            spoken |= !matches!(verdict, Verdict::Stale(_));
            let (word, detail) = match verdict {
                Verdict::Fixed => ("fixed", String::new()),
                Verdict::StillFailing(found) => ("still failing", format!(": {found}")),
                Verdict::Stale(why) => ("stale", format!(": {why}")),
            };
            writeln!(to, "{word:<14} {} · {who}{detail}", path.display())?;
        }
        // Only what runs found is pruned: a regression is kept because it is fixed.
        if prune && fixed && path.parent().is_some_and(|folder| folder.ends_with("found")) {
            fs::remove_file(path).map_err(|error| Error::io("remove", path, &error))?;
            writeln!(to, "{:<14} {}", "removed", path.display())?;
        }
    }
    Ok(match (failing, spoken) {
        (true, _) => ExitCode::Findings,
        (false, true) => ExitCode::AllHold,
        (false, false) => ExitCode::NothingChecked,
    })
}

/// The case files named, those in folders by their names.
fn case_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        let mut open = vec![path.clone()];
        while let Some(folder) = open.pop() {
            let entries =
                fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, &error))?;
            open.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
            files.extend(yaml_files(&folder));
        }
        if files.len() == before {
            return Err(Error::new("there is no case file in this folder").at(path));
        }
        files[before..].sort();
    }
    Ok(files)
}

pub(super) fn shrink(path: &Path, manifest: Option<&Path>, to: Option<&Path>) -> Done {
    let manifest = manifest.map(Manifest::read).transpose()?;
    let file = read(path)?;
    let wrong = |why: &str| Error::new(why).at(path);
    let invariant =
        invariant_of(&file).ok_or_else(|| wrong("the case names no invariant to shrink for"))?;
    let first = subjects(&file, manifest.as_ref())?.into_iter().next();
    let (mut subject, place) =
        first.ok_or_else(|| wrong("the manifest has no component of its contract"))?;
    if let Some(why) = subject.component.prepare(place)? {
        return Err(wrong(&why).into());
    }
    let case = file.case.rounded(place.dtype);
    let found = match subject.try_case(invariant, &case, place, &mut 0).0 {
        Err(Stop::Broken(found)) => found,
        _ => {
            let message = format!("{} does not break `{}`", subject.name, invariant.id);
            return Err(wrong(&message).into());
        }
    };
    let broken = Broken { case, found, at_case: 1 };
    let shrunk = smallest(&mut subject, invariant, broken, place, &mut 0);
    let shown = one_line(&*shrunk.case);
    let smaller = CaseFile { case: shrunk.case, options: subject.options, ..file };
    let written = to.unwrap_or(path);
    smaller.write(written)?;
    let (mut to, _) = output();
    writeln!(to, "{shown}")?;
    writeln!(to, "written to {} after {} candidates", written.display(), shrunk.tried)?;
    Ok(ExitCode::AllHold)
}

/// Reads a case file, and says what is out of date in it.
fn read(path: &Path) -> Result<CaseFile, Error> {
    let file = CaseFile::read(path)?;
    if let Some(outdated) = &file.outdated {
        eprintln!("warning: {}: {outdated}", path.display());
    }
    Ok(file)
}

/// What became of a kept case.
enum Verdict {
    /// The invariant holds on it now.
    Fixed,
    /// It is still broken; what was found.
    StillFailing(String),
    /// Nothing can be said; why.
    Stale(String),
}

/// The components that a case file speaks about, ready at its place.
///
/// Without a manifest the builtin reference, where the file names no component; with one the
/// component that the file names, or all components of its contract where it names none or names
/// one that is gone.
fn subjects(file: &CaseFile, manifest: Option<&Manifest>) -> Result<Vec<(Subject, Place)>, Error> {
    let contract = file.contract;
    let mut subjects = Vec::new();
    let Some(manifest) = manifest else {
        if let Some(name) = &file.component {
            let message =
                format!("it is of the component `{name}`: add --manifest with its manifest");
            return Err(Error::new(message));
        }
        let reference = Box::new(Builtin::reference(contract));
        let mut subject = Subject::new(contract, "builtin reference", reference);
        subject.options = Arc::clone(&file.options);
        return Ok(vec![(subject, file.place.unwrap_or(Place::CPU_F64))]);
    };
    let of_contract = || {
        let components = manifest.components.iter();
        components.filter(|declared| declared.contract.id() == contract.id())
    };
    let named = |name: &str| of_contract().any(|declared| declared.name == name);
    let wanted = file.component.as_deref().filter(|name| named(name));
    for declared in of_contract().filter(|d| wanted.is_none_or(|name| name == d.name)) {
        let places = match file.place {
            Some(place) => vec![place],
            None => declared.places(Place::from_env()?.as_deref()),
        };
        for place in places {
            let mut subject = Subject::declared(manifest, declared);
            // A finding is replayed under the options that broke it; a regression, which is of no
            // component, under the component's own.
            if wanted.is_some() {
                subject.options = Arc::clone(&file.options);
            }
            subjects.push((subject, place));
        }
    }
    Ok(subjects)
}

fn invariant_of(file: &CaseFile) -> Option<&'static AnyInvariant> {
    file.contract.invariant(file.invariant.as_deref()?)
}

/// What became of a kept case, for each component that it speaks about.
fn verdicts(path: &Path, manifest: Option<&Manifest>) -> Result<Vec<(String, Verdict)>, Stopped> {
    let file = read(path)?;
    let mut verdicts = Vec::new();
    for (mut subject, place) in subjects(&file, manifest)? {
        let who = format!("{} · {place}", subject.name);
        verdicts.push((who, replay(&file, &mut subject, place)?));
    }
    if verdicts.is_empty() {
        let why = format!("the manifest has no component of `{}`", file.contract.id());
        verdicts.push(("no component".to_owned(), Verdict::Stale(why)));
    }
    Ok(verdicts)
}

fn replay(file: &CaseFile, subject: &mut Subject, place: Place) -> Result<Verdict, Stopped> {
    let contract = file.contract;
    let case = file.case.rounded(place.dtype);
    if let Err(why) = contract.valid(&*case, &*subject.options, place.dtype) {
        return Ok(Verdict::Stale(format!("outside the contract: {why}")));
    }
    if let Some(why) = subject.component.prepare(place)? {
        return Ok(Verdict::Stale(why));
    }
    // A case without an invariant is checked on all of them.
    let invariants = match invariant_of(file) {
        Some(invariant) => std::slice::from_ref(invariant),
        None => contract.invariants(),
    };
    let mut spoke = false;
    for invariant in invariants {
        if !invariant.applies(&*subject.options, place) {
            continue;
        }
        match subject.try_case(invariant, &case, place, &mut 0) {
            (Ok(()), _) => spoke = true,
            (Err(Stop::Vacuous), _) => {}
            (Err(Stop::Broken(found)), _) => {
                return Ok(Verdict::StillFailing(format!("{}: {found}", invariant.id)));
            }
            (Err(Stop::Failed), failed) => {
                let why = failed.map_or(String::new(), |(_, failure)| failure.to_string());
                return Ok(Verdict::StillFailing(why));
            }
        }
    }
    Ok(if spoke {
        Verdict::Fixed
    } else {
        Verdict::Stale("its invariant says nothing about this case".to_owned())
    })
}
