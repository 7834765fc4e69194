//! Manifests: the components of a training repository and what is declared about them.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::check::Subject;
use crate::component;
use crate::contract::{Contract, Options};
use crate::contracts;
use crate::error::{Error, nearest};
use crate::fault::Builtin;
use crate::place::Place;
use crate::process::{ArrayLibrary, Process, Python, default_interpreter};
use crate::yaml::{self, Step};

/// A manifest that has been read and whose names are all known.
#[derive(Debug)]
pub struct Manifest {
    path: PathBuf,
    text: String,
    python: Python,
    corpora: PathBuf,
    /// The components, in order.
    pub components: Vec<Declared>,
}

/// One component as declared.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// The name of its contract.
    pub contract: &'static str,
    /// Where it is.
    pub target: Target,
    /// Where to check it; empty for the default.
    pub places: Vec<Place>,
    /// The factor on its tolerances.
    pub tolerance: f64,
    index: usize,
}

/// Where a component is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `python:FILE.py:FUNCTION`, `python:MODULE:FUNCTION`.
    Python(String),
    /// `builtin:CONTRACT/reference`, `builtin:CONTRACT/fault/ID`.
    Builtin(String),
    /// `{process: [command, argument, …]}`.
    Process(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    python: PythonFile,
    #[serde(default)]
    corpora: Option<PathBuf>,
    components: Vec<ComponentFile>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PythonFile {
    interpreter: Option<PathBuf>,
    path: Option<Vec<PathBuf>>,
    arrays: ArrayLibrary,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComponentFile {
    name: String,
    contract: ContractName,
    target: Target,
    #[serde(default)]
    #[expect(dead_code, reason = "read again by the contract")]
    options: serde_yaml::Value,
    #[serde(default)]
    places: Vec<Place>,
    #[serde(default = "one")]
    tolerance: f64,
    #[serde(default)]
    #[expect(dead_code, reason = "read again by the contract")]
    skip: serde_yaml::Value,
    #[serde(default)]
    #[expect(dead_code, reason = "read again by the contract")]
    known: serde_yaml::Value,
}

fn one() -> f64 {
    1.0
}

struct ContractName(&'static str);

impl<'de> Deserialize<'de> for ContractName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        match contracts::IDS.iter().find(|id| **id == name) {
            Some(id) => Ok(ContractName(id)),
            None => Err(D::Error::custom(unknown_contract(&name))),
        }
    }
}

/// The message for a contract that does not exist.
pub fn unknown_contract(name: &str) -> String {
    let known = contracts::IDS.join("`, `");
    let suggestion = nearest(name, contracts::IDS.iter().copied());
    format!("unknown contract `{name}`{suggestion}; known: `{known}`")
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TargetVisitor)
    }
}

struct TargetVisitor;

impl<'de> Visitor<'de> for TargetVisitor {
    type Value = Target;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "`python:FILE.py:FUNCTION`, `python:MODULE:FUNCTION`, `builtin:CONTRACT/reference`, \
             `builtin:CONTRACT/fault/ID` or `{process: [command, argument, …]}`",
        )
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Target, E> {
        match text.split_once(':') {
            Some(("python", rest)) if rest.contains(':') => Ok(Target::Python(text.to_owned())),
            Some(("builtin", rest)) => Ok(Target::Builtin(rest.to_owned())),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Target, M::Error> {
        let mut process = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "process" {
                return Err(M::Error::unknown_field(&key, &["process"]));
            }
            process = Some(map.next_value::<Vec<String>>()?);
        }
        match process {
            Some(command) if !command.is_empty() => Ok(Target::Process(command)),
            _ => Err(M::Error::custom("`process` is empty, expected [command, argument, …]")),
        }
    }
}

/// Options that have passed their own check, so that a bad range has a line too.
struct Checked<O>(O);

impl<O: Options> Default for Checked<O> {
    fn default() -> Self {
        Checked(O::default())
    }
}

impl<'de, O: Options> Deserialize<'de> for Checked<O> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let options = O::deserialize(from)?;
        match options.check() {
            Ok(()) => Ok(Checked(options)),
            Err((name, why)) => Err(D::Error::custom(format!("option `{name}`: {why}"))),
        }
    }
}

/// Invariants of a contract, each with a reason.
struct Reasons<C>(BTreeMap<String, String>, std::marker::PhantomData<C>);

impl<C> Default for Reasons<C> {
    fn default() -> Self {
        Reasons(BTreeMap::new(), std::marker::PhantomData)
    }
}

impl<'de, C: Contract> Deserialize<'de> for Reasons<C> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let reasons = BTreeMap::<String, String>::deserialize(from)?;
        for (id, reason) in &reasons {
            check_invariant::<C>(id).map_err(D::Error::custom)?;
            if reason.trim().is_empty() {
                return Err(D::Error::custom(format!("`{id}` has no reason")));
            }
        }
        Ok(Reasons(reasons, std::marker::PhantomData))
    }
}

/// Whether a contract has an invariant of this name.
///
/// # Errors
/// The message, with the nearest known name.
pub fn check_invariant<C: Contract>(id: &str) -> Result<(), String> {
    let invariants = C::invariants();
    if invariants.iter().any(|invariant| invariant.id == id) {
        return Ok(());
    }
    let suggestion = nearest(id, invariants.iter().map(|invariant| invariant.id));
    Err(format!("unknown invariant `{id}` of `{}`{suggestion}", C::ID))
}

impl Manifest {
    /// Reads a manifest; every name in it is checked before anything runs.
    ///
    /// # Errors
    /// With path, line, column and the nearest known name.
    pub fn read(path: &Path) -> Result<Manifest, Error> {
        let text = yaml::read(path)?;
        Self::parse(path, text).map_err(|error| error.at(path))
    }

    fn parse(path: &Path, text: String) -> Result<Manifest, Error> {
        let file: File = yaml::parse(&text)?;
        if file.version != 1 {
            return Err(Error::new(format!("version {} is not known, expected 1", file.version)));
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let from_here = |path: &Path| tidy(&parent.join(path));
        let defaults = Python::default();
        let program = |path: PathBuf| {
            // A bare name is looked for on the search path, as a shell does.
            if path.components().count() > 1 { absolute(&from_here(&path)) } else { path }
        };
        let python = Python {
            interpreter: file.python.interpreter.map_or_else(default_interpreter, program),
            path: file
                .python
                .path
                .unwrap_or_else(|| vec![PathBuf::from(".")])
                .iter()
                .map(|path| absolute(&from_here(path)))
                .collect(),
            arrays: file.python.arrays,
            timeout: file.python.timeout_ms.map_or(defaults.timeout, Duration::from_millis),
            folder: folder.to_owned(),
        };
        let mut components: Vec<Declared> = Vec::new();
        for (index, component) in file.components.into_iter().enumerate() {
            let ComponentFile { name, contract, target, places, tolerance, .. } = component;
            if let Some(earlier) = components.iter().find(|earlier| earlier.name == name) {
                return Err(Error::new(format!(
                    "components {} and {} are both named `{name}`",
                    earlier.index + 1,
                    index + 1
                )));
            }
            if !(tolerance > 0.0 && tolerance.is_finite()) {
                return Err(Error::new(format!("tolerance {tolerance}: expected a number > 0"))
                    .within(format!("component `{name}`")));
            }
            components.push(Declared {
                name,
                contract: contract.0,
                target,
                places,
                tolerance,
                index,
            });
        }
        if components.is_empty() {
            return Err(Error::new("`components` is empty, expected at least one"));
        }
        let corpora = from_here(file.corpora.as_deref().unwrap_or(Path::new("corpora")));
        let manifest = Manifest { path: path.to_owned(), text, python, corpora, components };
        for declared in &manifest.components {
            let check = CheckNames { manifest: &manifest, declared };
            contracts::visit(declared.contract, check).expect("the name was checked")?;
        }
        Ok(manifest)
    }

    /// The corpora folder.
    pub fn corpora(&self) -> &Path {
        &self.corpora
    }

    /// The component with all that is declared about it, not started yet.
    ///
    /// # Errors
    /// With path, line, column and the nearest known name.
    pub fn subject<C: Contract>(&self, declared: &Declared) -> Result<Subject<C>, Error> {
        self.unlocated_subject(declared).map_err(|error| error.at(&self.path))
    }

    fn unlocated_subject<C: Contract>(&self, declared: &Declared) -> Result<Subject<C>, Error> {
        let within = |error: Error| error.within(format!("component `{}`", declared.name));
        let component: Box<dyn component::Component<C>> = match &declared.target {
            Target::Builtin(name) => Box::new(builtin::<C>(name).map_err(within)?),
            Target::Python(target) => Box::new(Process::python(target, &self.python)),
            Target::Process(command) => {
                Box::new(Process::command(command, &self.python.folder, self.python.timeout))
            }
        };
        let options: Checked<C::Options> = self.part(declared, "options").map_err(within)?;
        let skip: Reasons<C> = self.part(declared, "skip").map_err(within)?;
        let known: Reasons<C> = self.part(declared, "known").map_err(within)?;
        Ok(Subject {
            name: declared.name.clone(),
            options: options.0,
            tolerance: declared.tolerance,
            skip: skip.0,
            known: known.0,
            only: Vec::new(),
            corpora: Some(self.corpora.clone()),
            first: Vec::new(),
            component,
        })
    }

    fn part<T: serde::de::DeserializeOwned + Default>(
        &self,
        declared: &Declared,
        key: &str,
    ) -> Result<T, Error> {
        let steps = [Step::Key("components"), Step::Item(declared.index), Step::Key(key)];
        yaml::parse_at(&self.text, &steps)
    }
}

impl Declared {
    /// The places to check it at: those asked for, else those declared, else `cpu/f32`.
    pub fn places(&self, asked: Option<&[Place]>) -> Vec<Place> {
        match asked {
            Some(places) => places.to_vec(),
            None if self.places.is_empty() => vec![Place::CPU_F32],
            None => self.places.clone(),
        }
    }
}

/// Reads options and invariant names of one component, so that mistakes show before anything runs.
struct CheckNames<'a> {
    manifest: &'a Manifest,
    declared: &'a Declared,
}

impl contracts::Visit for CheckNames<'_> {
    type Output = Result<(), Error>;

    fn visit<C: Contract>(self) -> Result<(), Error> {
        self.manifest.unlocated_subject::<C>(self.declared).map(drop)
    }
}

/// The path without `.` and `a/..`, as people write it.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        let after_name = matches!(tidy.components().next_back(), Some(Component::Normal(_)));
        match part {
            Component::CurDir => {}
            Component::ParentDir if after_name => {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    if tidy.as_os_str().is_empty() { PathBuf::from(".") } else { tidy }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The builtin component `CONTRACT/reference` or `CONTRACT/fault/ID`.
///
/// # Errors
/// The name is not known.
pub fn builtin<C: Contract>(name: &str) -> Result<Builtin<C>, Error> {
    let (contract, rest) = name.split_once('/').unwrap_or((name, ""));
    if contract != C::ID {
        let error = format!("target `builtin:{name}` is not of the contract `{}`", C::ID);
        return Err(Error::new(error));
    }
    if rest == "reference" {
        return Ok(Builtin::reference());
    }
    let faults = C::faults();
    let names: Vec<&str> = faults.iter().map(|fault| fault.id).collect();
    match rest.strip_prefix("fault/") {
        None => Err(Error::new(format!(
            "unknown target `builtin:{name}`, expected `builtin:{0}/reference` or \
             `builtin:{0}/fault/ID`",
            C::ID
        ))),
        Some(id) => match faults.into_iter().find(|fault| fault.id == id) {
            None => Err(Error::new(format!(
                "unknown fault `{id}` of `{}`{}",
                C::ID,
                nearest(id, names)
            ))),
            Some(fault) => Ok(Builtin::fault(fault, 0)),
        },
    }
}
