//! `shakedown replay` and `shakedown shrink`: kept cases against today's components.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Done, Stopped, output};
use shakedown_contracts::REGISTRY;
use shakedown_core::contract::component::Component as _;
use shakedown_core::contract::invariant::AnyInvariant;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::Place;
use shakedown_core::value::text::{for_shell, one_line};
use shakedown_core::value::yaml;
use shakedown_engine::files::case_file::CaseFile;
use shakedown_engine::files::corpora;
use shakedown_engine::files::manifest::Manifest;
use shakedown_engine::host::builtin::Builtin;
use shakedown_engine::report::ExitCode;
use shakedown_engine::shrink::shrink as smallest;
use shakedown_engine::subject::{Broken, Subject};

pub(super) fn run(paths: &[PathBuf], manifest: Option<&Path>, prune: bool, verbose: bool) -> Done {
    let manifest = manifest.map(|path| Manifest::read(&REGISTRY, path)).transpose()?;
    let (mut to, _) = output();
    let mut started = Started::default();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for path in &case_files(paths)? {
        let verdicts = verdicts(path, manifest.as_ref(), &mut started, verbose)?;
        let fixed = verdicts.iter().all(|told| matches!(told.verdict, Verdict::Fixed));
        for Told { who, verdict, besides } in verdicts {
            *counts.entry(verdict.word()).or_default() += 1;
            let (word, detail) = match verdict {
                Verdict::Excused(options) => (format!("excused by {options}"), String::new()),
                Verdict::Fixed => (verdict.word().to_owned(), String::new()),
                Verdict::StillFailing(ref why)
                | Verdict::Stale(ref why)
                | Verdict::NotJudged(ref why) => (verdict.word().to_owned(), format!(": {why}")),
            };
            writeln!(to, "{word:<14} {} · {who}{detail}", path.display())?;
            for (invariant, said) in besides {
                writeln!(to, "{:<14} {invariant} {said}", "")?;
            }
        }
        // Only what runs found is pruned: a regression is kept because it is fixed.
        if prune && fixed && is_found(path) {
            fs::remove_file(path).map_err(|error| Error::io("remove", path, &error))?;
            writeln!(to, "{:<14} {}", "removed", path.display())?;
        }
    }
    let of = |word: &str| counts.get(word).copied().unwrap_or(0);
    let said = WORDS.map(|word| (of(word), word)).into_iter().filter(|(count, _)| *count > 0);
    let said: Vec<String> = said.map(|(count, word)| format!("{count} {word}")).collect();
    writeln!(to, "{}", said.join(", "))?;
    Ok(if of("still failing") > 0 {
        ExitCode::Findings
    } else if of("fixed") + of("excused") > 0 {
        ExitCode::AllHold
    } else {
        ExitCode::NothingChecked
    })
}

/// Whether a file is among what runs found.
fn is_found(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("found"))
}

/// The case files named, those in folders by their names; journals are none.
fn case_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        match path.is_dir() {
            true => files.extend(corpora::case_files(path)?),
            false => files.push(path.clone()),
        }
        files.retain(|path| !(is_found(path) && is_journal(path)));
        if path.is_dir() && files.len() == before {
            return Err(Error::new("there is no case file in this folder").at(path));
        }
    }
    match paths {
        [path, ..] if files.is_empty() => Err(Error::new("a journal is no case").at(path)),
        _ => Ok(files),
    }
}

/// Whether a file has the name of a journal, which earlier versions wrote as YAML.
fn is_journal(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("in-flight-")
}

pub(super) fn shrink(path: &Path, manifest: Option<&Path>, to: Option<&Path>) -> Done {
    let manifest = manifest.map(|path| Manifest::read(&REGISTRY, path)).transpose()?;
    let file = CaseFile::read(&REGISTRY, path)?;
    let wrong = |why: &str| Error::new(why).at(path);
    let invariant =
        invariant_of(&file).ok_or_else(|| wrong("the case names no invariant to shrink for"))?;
    let mut started = Started::default();
    let (judges, elsewhere) = judges(&file, manifest.as_ref(), &mut started)?;
    let why = elsewhere.map_or_else(
        || "the manifest has no component of its contract".to_owned(),
        |elsewhere| format!("it was {elsewhere}"),
    );
    let judge = judges.into_iter().next().ok_or_else(|| wrong(&why))?;
    let mut subject = started.remove(&judge.name).expect("each judge is started");
    subject.options = judge.options;
    let place = judge.place;
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
    if let Some(other) = shrunk.other {
        let found = other.found.message.lines().next().unwrap_or("");
        writeln!(to, "another way in which it breaks, left alone: {found}")?;
    }
    writeln!(to, "written to {} after {} candidates", written.display(), shrunk.tried)?;
    Ok(ExitCode::AllHold)
}

/// What became of a kept case.
enum Verdict {
    /// The invariant holds on it now.
    Fixed,
    /// It is still broken; what was found.
    StillFailing(String),
    /// It is broken under the options of then; the options of today that say it may be.
    Excused(String),
    /// Nothing can be said; why.
    Stale(String),
    /// It holds, but on something else than what it was found on.
    NotJudged(String),
}

/// The words for verdicts, in the order of the last line.
const WORDS: [&str; 5] = ["fixed", "still failing", "excused", "stale", "not judged"];

impl Verdict {
    fn word(&self) -> &'static str {
        WORDS[match self {
            Verdict::Fixed => 0,
            Verdict::StillFailing(_) => 1,
            Verdict::Excused(_) => 2,
            Verdict::Stale(_) => 3,
            Verdict::NotJudged(_) => 4,
        }]
    }
}

/// The components that were started, by their names: each is started once for all its cases.
type Started = BTreeMap<String, Subject>;

/// A component that a case file speaks about, and the place.
struct Judge {
    /// As in [`Started`].
    name: String,
    place: Place,
    /// The options that it is called under: those under which the case was found.
    options: Arc<dyn AnyOptions>,
    /// Those that the manifest declares for it now.
    declared: Arc<dyn AnyOptions>,
}

/// The components that a case file speaks about, started; and what it was found on, where that is
/// none of them.
///
/// A builtin component is called where the file names it, and the builtin reference where there is
/// no manifest and it names none; otherwise the component of the manifest that the file names, or
/// all components of its contract where it names none or names one that is gone.
fn judges(
    file: &CaseFile,
    manifest: Option<&Manifest>,
    started: &mut Started,
) -> Result<(Vec<Judge>, Option<String>), Error> {
    let contract = file.contract;
    let of_contract = || {
        let components = manifest.into_iter().flat_map(|manifest| &manifest.components);
        components.filter(|declared| declared.contract.id() == contract.id())
    };
    let named = |name: &&str| of_contract().any(|declared| declared.name == *name);
    let wanted = file.component.as_deref().filter(named);
    let builtin = match (wanted, &file.component) {
        (None, Some(name)) => Subject::builtin(contract, name).ok(),
        (None, None) if manifest.is_none() && file.recorded.is_none() => {
            let reference = Box::new(Builtin::reference(contract));
            Some(Subject::new(contract, "builtin reference", reference))
        }
        _ => None,
    };
    if let Some(subject) = builtin {
        let judge = Judge {
            name: format!("builtin {} {}", contract.id(), subject.name),
            place: file.place.unwrap_or(Place::CPU_F64),
            options: Arc::clone(&file.options),
            declared: Arc::clone(&file.options),
        };
        started.entry(judge.name.clone()).or_insert(subject);
        return Ok((vec![judge], None));
    }
    let Some(manifest) = manifest else {
        return match (&file.component, &file.recorded) {
            (Some(test), _) if test.contains("::") => {
                Ok((Vec::new(), Some(format!("run pytest {}", for_shell(test)))))
            }
            (Some(name), _) => Err(Error::new(format!(
                "it is of the component `{name}`: add --manifest with its manifest"
            ))),
            (None, recorded) => Ok((Vec::new(), recorded.as_deref().map(found_on_record))),
        };
    };
    let mut judges = Vec::new();
    for declared in of_contract().filter(|d| wanted.is_none_or(|name| name == d.name)) {
        let places = match file.place {
            Some(place) => vec![place],
            None => declared.places(Place::from_env()?.as_deref()),
        };
        // A finding is replayed under the options that broke it; a regression, which is of no
        // component, under the component's own.
        let options = if wanted.is_some() { &file.options } else { &declared.options };
        judges.extend(places.into_iter().map(|place| Judge {
            name: declared.name.clone(),
            place,
            options: Arc::clone(options),
            declared: Arc::clone(&declared.options),
        }));
        started
            .entry(declared.name.clone())
            .or_insert_with(|| Subject::declared(manifest, declared));
    }
    let elsewhere = match (wanted, &file.component, &file.recorded) {
        (None, Some(name), _) => {
            Some(format!("found on the component `{name}`, which the manifest does not have"))
        }
        (_, _, Some(batch)) => Some(found_on_record(batch)),
        _ => None,
    };
    Ok((judges, elsewhere))
}

fn found_on_record(batch: &str) -> String {
    format!("found on the outputs recorded in {batch}")
}

fn invariant_of(file: &CaseFile) -> Option<&'static AnyInvariant> {
    file.contract.invariant(file.invariant.as_deref()?)
}

/// What became of a kept case for one component.
struct Told {
    /// The component and the place.
    who: String,
    verdict: Verdict,
    /// What the other invariants that the bug broke say of the case now, where that is asked for.
    besides: Vec<(String, String)>,
}

/// What became of a kept case, for each component that it speaks about.
fn verdicts(
    path: &Path,
    manifest: Option<&Manifest>,
    started: &mut Started,
    verbose: bool,
) -> Result<Vec<Told>, Stopped> {
    let file = CaseFile::read(&REGISTRY, path)?;
    let (judges, elsewhere) = judges(&file, manifest, started)?;
    let mut verdicts = Vec::new();
    for judge in judges {
        let subject = started.get_mut(&judge.name).expect("each judge is started");
        let verdict = match (judge.verdict(&file, subject)?, &elsewhere) {
            (Verdict::Fixed, Some(elsewhere)) => Verdict::NotJudged(elsewhere.clone()),
            (Verdict::Fixed, None) if file.stateful => Verdict::NotJudged(
                "it failed only after other calls; `check` makes them".to_owned(),
            ),
            // Files of earlier versions, and those written by hand.
            (Verdict::Fixed, None) if is_found(path) && file.component.is_none() => {
                Verdict::NotJudged("it names no component that it was found on".to_owned())
            }
            (Verdict::Fixed, None) if manifest.is_none() && file.component.is_none() => {
                Verdict::NotJudged("no component of yours was called: add --manifest".to_owned())
            }
            (verdict, _) => verdict,
        };
        let besides = if verbose { judge.besides(&file, subject)? } else { Vec::new() };
        let who = format!("{} · {}", subject.name, judge.place);
        verdicts.push(Told { who, verdict, besides });
    }
    if verdicts.is_empty() {
        let verdict = match elsewhere {
            Some(elsewhere) => Verdict::NotJudged(elsewhere),
            None => {
                let id = file.contract.id();
                Verdict::Stale(format!("the manifest has no component of `{id}`"))
            }
        };
        let who = "no component".to_owned();
        verdicts.push(Told { who, verdict, besides: Vec::new() });
    }
    Ok(verdicts)
}

impl Judge {
    /// What became of a case, also under the options of today.
    fn verdict(&self, file: &CaseFile, subject: &mut Subject) -> Result<Verdict, Stopped> {
        let verdict = self.under(&self.options, file, subject)?;
        if *self.options == *self.declared || matches!(verdict, Verdict::Stale(_)) {
            return Ok(verdict);
        }
        match (verdict, self.under(&self.declared, file, subject)?) {
            (_, failing @ Verdict::StillFailing(_)) => Ok(failing),
            (Verdict::StillFailing(_), _) => {
                self.excuses(file, subject).map(|options| Verdict::Excused(options.join(", ")))
            }
            (verdict, _) => Ok(verdict),
        }
    }

    /// What each of the other invariants that the bug broke says of its case.
    fn besides(
        &self,
        file: &CaseFile,
        subject: &mut Subject,
    ) -> Result<Vec<(String, String)>, Stopped> {
        let mut besides = Vec::new();
        for id in &file.also {
            let of_other = CaseFile { invariant: Some(id.clone()), ..file.clone() };
            let said = match self.under(&self.options, &of_other, subject)? {
                Verdict::StillFailing(why) => {
                    let why = why.strip_prefix(&format!("{id}: ")).unwrap_or(&why).to_owned();
                    format!("breaks: {why}")
                }
                Verdict::Fixed => "holds".to_owned(),
                _ => "says nothing about this case".to_owned(),
            };
            besides.push((id.clone(), said));
        }
        Ok(besides)
    }

    /// The option of today that alone excuses a case, or all that are not as they were.
    fn excuses(&self, file: &CaseFile, subject: &mut Subject) -> Result<Vec<String>, Stopped> {
        let before = self.options.json();
        let mut changed = Vec::new();
        for (name, value) in self.declared.json() {
            if before.get(&name) == Some(&value) {
                continue;
            }
            let value = yaml::inline(&value);
            let option = format!("{name}: {value}");
            if let Ok(options) = self.options.with(&name, &value)
                && options.check().is_ok()
                && !matches!(self.under(&options, file, subject)?, Verdict::StillFailing(_))
            {
                return Ok(vec![option]);
            }
            changed.push(option);
        }
        Ok(changed)
    }

    fn under(
        &self,
        options: &Arc<dyn AnyOptions>,
        file: &CaseFile,
        subject: &mut Subject,
    ) -> Result<Verdict, Stopped> {
        subject.options = Arc::clone(options);
        replay(file, subject, self.place)
    }
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
