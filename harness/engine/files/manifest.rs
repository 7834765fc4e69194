//! Manifests: the components of a training repository and what is declared about them.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};

use crate::host::builtin::Builtin;
use crate::host::process::{
    ArrayLibrary, Batch, Process, Python, Signature, Wiring, default_interpreter,
};
use shakedown_core::contract::component;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::registry::Registry;
use shakedown_core::value::error::{Error, cut, unknown};
use shakedown_core::value::location::Location;
use shakedown_core::value::place::Place;
use shakedown_core::value::record::Field;
use shakedown_core::value::yaml;
use shakedown_core::value::yaml::{Document, Step};

/// A manifest that has been read and whose names are all known.
pub struct Manifest {
    path: PathBuf,
    document: Document,
    python: Python,
    corpora: PathBuf,
    /// The components, in order.
    pub components: Vec<Declared>,
}

/// One component as declared.
#[derive(Clone)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its contract.
    pub contract: &'static dyn AnyContract,
    /// Where it is.
    pub target: Target,
    /// The names by which a Python function takes its inputs.
    pub signature: Signature,
    /// How a Python function is found, made and called besides.
    pub wiring: Wiring,
    /// Where to check it; empty for the default.
    pub places: Vec<Place>,
    /// The factor on its tolerances.
    pub tolerance: f64,
    /// The options in force.
    pub options: Arc<dyn AnyOptions>,
    /// Invariants left out, with the reason.
    pub skip: BTreeMap<String, String>,
    /// Invariants expected to fail, with the reason.
    pub known: BTreeMap<String, String>,
    index: usize,
    line: usize,
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
    load_timeout_ms: Option<u64>,
    memory_mb: Option<u64>,
    compile: bool,
    fork: Option<bool>,
    setup: Option<String>,
    env: Option<BTreeMap<String, serde_yaml::Value>>,
    stub: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComponentFile {
    name: String,
    contract: String,
    target: Target,
    #[serde(default)]
    signature: Signature,
    #[serde(default)]
    answer_columns: Vec<String>,
    #[serde(default)]
    columns: Option<BTreeMap<String, serde_yaml::Value>>,
    #[serde(default)]
    args: BTreeMap<String, String>,
    #[serde(default)]
    batch: Option<Batch>,
    #[serde(default)]
    init: Option<BTreeMap<String, serde_yaml::Value>>,
    #[serde(default)]
    setup: Option<String>,
    #[serde(default)]
    env: Option<BTreeMap<String, serde_yaml::Value>>,
    #[serde(default)]
    stub: Option<Vec<String>>,
    #[serde(default)]
    #[expect(dead_code, reason = "read again by the contract")]
    options: serde_yaml::Value,
    #[serde(default)]
    places: Option<Vec<Place>>,
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
            Some((scheme, _)) if scheme != "python" => {
                Err(E::custom(unknown("kind of target", scheme, &["python", "builtin"])))
            }
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Target, M::Error> {
        let mut process = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "process" {
                return Err(serde::de::Error::unknown_field(&key, &["process"]));
            }
            process = Some(map.next_value::<Vec<String>>()?);
        }
        match process {
            Some(command) if !command.is_empty() => Ok(Target::Process(command)),
            _ => Err(serde::de::Error::invalid_length(0, &"a list [command, argument, …]")),
        }
    }
}

impl Manifest {
    /// The same, where what components print is shown.
    pub fn with_output_shown(mut self, is_shown: bool) -> Manifest {
        self.python.show_output = is_shown;
        self
    }

    /// The same, where no component may take longer than this to load.
    pub fn loaded_within(mut self, limit: Option<Duration>) -> Manifest {
        if let Some(limit) = limit {
            self.python.load_timeout = self.python.load_timeout.min(limit);
        }
        self
    }

    /// Reads a manifest; every name in it is checked before anything runs.
    ///
    /// # Errors
    /// With path, line, column and the nearest known name.
    pub fn read(contracts: &Registry, path: &Path) -> Result<Manifest, Error> {
        let text = yaml::read(path)?;
        Self::parse(contracts, path, &text).map_err(|error| error.at(path))
    }

    /// Reads the text of the manifest at `path`.
    pub fn parse(contracts: &Registry, path: &Path, text: &str) -> Result<Manifest, Error> {
        let document = Document::new(text);
        let file: File = document.read()?;
        let wrong = |steps: &[Step<'_>], why: String| document.wrong(steps, why);
        if file.version != 1 {
            let why = format!("unknown version {}, expected 1", file.version);
            return Err(wrong(&[Step::Key("version")], why));
        }
        let PythonFile { timeout_ms, load_timeout_ms, memory_mb, .. } = &file.python;
        for (key, value) in [
            ("timeout_ms", timeout_ms),
            ("load_timeout_ms", load_timeout_ms),
            ("memory_mb", memory_mb),
        ] {
            if *value == Some(0) {
                let steps = [Step::Key("python"), Step::Key(key)];
                return Err(wrong(&steps, format!("{key}: expected 1 or more, found 0")));
            }
        }
        if file.components.is_empty() {
            let why = "expected at least one component, found an empty list";
            return Err(wrong(&[Step::Key("components")], why.to_owned()));
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        let PythonFile { setup, env, stub, .. } = &file.python;
        let of_all = surroundings(setup.as_ref(), env.as_ref(), stub.as_ref())
            .map_err(|(key, why)| wrong(&[Step::Key("python"), Step::Key(key)], why))?;
        let python = file.python.at(parent);
        let corpora = tidy(&parent.join(file.corpora.as_deref().unwrap_or(Path::new("corpora"))));
        let mut components: Vec<Declared> = Vec::new();
        for (index, component) in file.components.into_iter().enumerate() {
            let line = document.line(&[Step::Key("components"), Step::Item(index)]);
            let declared = declared(contracts, index, line, component, &components, &of_all)
                .map_err(|(key, why)| wrong(&in_component(index, key), why))?;
            components.push(declared);
        }
        let mut manifest =
            Manifest { path: path.to_owned(), document, python, corpora, components: Vec::new() };
        for declared in &mut components {
            manifest.read_by_contract(declared)?;
        }
        manifest.components = components;
        Ok(manifest)
    }

    /// The file that it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How its Python functions are run.
    pub fn python(&self) -> &Python {
        &self.python
    }

    /// The corpora folder.
    pub fn corpora(&self) -> &Path {
        &self.corpora
    }

    /// Where the component is declared.
    pub fn location(&self, declared: &Declared) -> Location {
        Location::new(&self.path, declared.line)
    }

    /// What the contract of a component reads of its declaration.
    ///
    /// # Errors
    /// With line, column and the nearest known name.
    fn read_by_contract(&self, declared: &mut Declared) -> Result<(), Error> {
        let contract = declared.contract;
        if let Target::Builtin(name) = &declared.target {
            Builtin::named(contract, name)
                .map_err(|why| self.wrong(declared, &[Step::Key("target")], why))?;
        }
        let options = contract
            .read_options(&self.document, &in_component(declared.index, "options"))
            .map_err(|error| error.within(format!("component `{}`", declared.name)))?;
        options.check().map_err(|(name, why)| {
            let steps = [Step::Key("options"), Step::Key(name)];
            self.wrong(declared, &steps, format!("options.{name}: {why}"))
        })?;
        declared.options = options;
        self.check_batch(declared)?;
        declared.skip = self.reasons(declared, "skip")?;
        declared.known = self.reasons(declared, "known")?;
        Ok(())
    }

    /// Groups are arrays of rows only where they are alike and stand together.
    fn check_batch(&self, declared: &Declared) -> Result<(), Error> {
        let wrong = |why: &str| {
            let why = format!("component `{}`: batch: {why}", declared.name);
            Err(self.wrong(declared, &[Step::Key("batch")], why))
        };
        let is_groups = |field: &Field| field.name == "groups" && field.ndim == Some(1);
        match declared.wiring.batch {
            None => Ok(()),
            _ if !declared.contract.inputs().iter().any(is_groups) => {
                wrong(&format!("the rows of {} are in no groups", declared.contract.id()))
            }
            Some(Batch::Groups) if declared.options.json()["layout"] != "contiguous" => wrong(
                "`groups` is of groups of one size, so it needs `options: {layout: contiguous}`",
            ),
            _ => Ok(()),
        }
    }

    /// The component itself, not started yet.
    ///
    /// # Panics
    /// If it was not declared by this manifest.
    pub fn component(&self, declared: &Declared) -> Box<dyn component::Component> {
        let contract = declared.contract;
        match &declared.target {
            Target::Builtin(name) => {
                Box::new(Builtin::named(contract, name).expect("the name was checked"))
            }
            Target::Python(target) => {
                let process = Process::python(contract, target, declared.signature, &self.python);
                Box::new(process.wired(&declared.wiring))
            }
            Target::Process(command) => {
                let process = Process::command(contract, command, &self.python);
                Box::new(process.wired(&declared.wiring))
            }
        }
    }

    /// Invariants of the contract, each with a reason.
    fn reasons(&self, declared: &Declared, key: &str) -> Result<BTreeMap<String, String>, Error> {
        let reasons: BTreeMap<String, String> = self.part(declared, key)?;
        for (id, reason) in &reasons {
            let wrong = |why: String| {
                let steps = [Step::Key(key), Step::Name(id)];
                self.wrong(declared, &steps, format!("{key}: {why}"))
            };
            declared.contract.invariant_called(id).map_err(wrong)?;
            if reason.trim().is_empty() {
                let why = format!("expected the reason why `{id}` is listed, found nothing");
                return Err(wrong(why));
            }
        }
        Ok(reasons)
    }

    /// What the contract reads of a component.
    fn part<T: DeserializeOwned + Default>(
        &self,
        declared: &Declared,
        key: &str,
    ) -> Result<T, Error> {
        self.document
            .read_at(&in_component(declared.index, key))
            .map_err(|error| error.within(format!("component `{}`", declared.name)))
    }

    /// An error about a part of a component.
    fn wrong(&self, declared: &Declared, more: &[Step<'_>], why: String) -> Error {
        let component = [Step::Key("components"), Step::Item(declared.index)];
        self.document
            .wrong(&[&component, more].concat(), why)
            .within(format!("component `{}`", declared.name))
    }
}

/// The contract whose functions libraries call in signatures of their own.
pub(crate) const REWARD_FUNCTION: &str = "reward-function";

fn in_component(index: usize, key: &str) -> [Step<'_>; 3] {
    [Step::Key("components"), Step::Item(index), Step::Key(key)]
}

/// A name is in every line that is printed of its component: that of a test with parameters fits.
const LONGEST_NAME: usize = 1000;

/// The component as declared, or the key that is wrong and why.
fn declared(
    contracts: &Registry,
    index: usize,
    line: usize,
    component: ComponentFile,
    earlier: &[Declared],
    of_all: &Wiring,
) -> Result<Declared, (&'static str, String)> {
    let length = component.name.chars().count();
    if component.name.trim().is_empty() {
        return Err(("name", "expected a name, found nothing".to_owned()));
    } else if length > LONGEST_NAME {
        let why = format!("expected at most {LONGEST_NAME} characters, found {length}");
        return Err(("name", why));
    }
    let wiring = wiring(&component, of_all)
        .map_err(|(key, why)| (key, format!("component `{}`: {why}", component.name)))?;
    let ComponentFile { name, contract, target, signature, places, tolerance, .. } = component;
    let wrong = |key, why: String| Err((key, format!("component `{name}`: {why}")));
    if let Some(twin) = earlier.iter().find(|earlier| earlier.name == name) {
        let (first, second) = (twin.index + 1, index + 1);
        return wrong("name", format!("the components {first} and {second} have the same name"));
    }
    let contract = match contracts.get(&contract) {
        Ok(contract) => contract,
        Err(why) => return wrong("contract", why),
    };
    let rewards = matches!(target, Target::Python(_)) && contract.id() == REWARD_FUNCTION;
    if signature != Signature::ByName && !rewards {
        let why = "signature: only a Python function of the contract reward-function has one";
        return wrong("signature", why.to_owned());
    }
    let options = contract.option_docs();
    let known: Vec<&str> = contract
        .inputs()
        .iter()
        .map(|field| field.name)
        .chain(options.iter().map(|doc| doc.name))
        .collect();
    if let Some(name) = wiring.args.keys().find(|name| !known.contains(&name.as_str())) {
        return wrong("args", format!("args: {}", unknown("input or option", name, &known)));
    }
    if !(tolerance > 0.0 && tolerance.is_finite()) {
        return wrong("tolerance", format!("tolerance: expected a number > 0, found {tolerance}"));
    }
    if places.as_ref().is_some_and(Vec::is_empty) {
        return wrong("places", "places: expected at least one, found an empty list".to_owned());
    }
    let places = places.unwrap_or_default();
    Ok(Declared {
        name,
        contract,
        target,
        signature,
        wiring,
        places,
        tolerance,
        options: contract.default_options(),
        skip: BTreeMap::new(),
        known: BTreeMap::new(),
        index,
        line,
    })
}

/// What a component says of how its function is found, made and called, over what the manifest says
/// for all, or the key that is wrong and why.
fn wiring(component: &ComponentFile, of_all: &Wiring) -> Result<Wiring, (&'static str, String)> {
    let ComponentFile { answer_columns, columns, args, init, setup, env, stub, .. } = component;
    let batch = component.batch;
    let is_python = matches!(component.target, Target::Python(_));
    let has_columns = matches!(component.signature, Signature::Trl | Signature::TrlChat);
    for (key, is_given, may_be, why) in [
        (
            "answer_columns",
            !answer_columns.is_empty(),
            has_columns,
            "only `signature: trl` and `trl-chat` have columns",
        ),
        (
            "columns",
            columns.is_some(),
            has_columns,
            "only `signature: trl` and `trl-chat` have columns",
        ),
        ("args", !args.is_empty(), is_python, "only a Python function has names for them"),
        ("batch", batch.is_some(), is_python, "only a Python function takes them otherwise"),
        ("init", init.is_some(), is_python, "only a Python class has a constructor"),
        ("setup", setup.is_some(), is_python, "only a Python function gets other objects"),
        (
            "env",
            env.is_some(),
            !matches!(component.target, Target::Builtin(_)),
            "what is built in has no process of its own",
        ),
        ("stub", stub.is_some(), is_python, "only a Python function imports modules"),
    ] {
        if is_given && !may_be {
            return Err((key, format!("{key}: {why}")));
        }
    }
    let own = surroundings(setup.as_ref(), env.as_ref(), stub.as_ref())?;
    let both = if is_python { of_all.clone() } else { Wiring::default() };
    let mut columns = values("columns", columns.as_ref())?.unwrap_or_default();
    for (name, value) in &mut columns {
        column(name, value).map_err(|why| ("columns", format!("columns.{name}: {why}")))?;
        if answer_columns.contains(name) {
            let why = format!("columns: `{name}` is one of answer_columns too");
            return Err(("columns", why));
        }
    }
    Ok(Wiring {
        args: args.clone(),
        batch,
        answer_columns: answer_columns.clone(),
        columns,
        init: values("init", init.as_ref())?,
        setup: own.setup.or(both.setup),
        env: both.env.into_iter().chain(own.env).collect(),
        stub: [both.stub, own.stub].concat(),
    })
}

/// What may be said of one component and of all, or the key that is wrong and why.
fn surroundings(
    setup: Option<&String>,
    env: Option<&BTreeMap<String, serde_yaml::Value>>,
    stub: Option<&Vec<String>>,
) -> Result<Wiring, (&'static str, String)> {
    if let Some(setup) = setup
        && !setup.strip_prefix("python:").is_some_and(|rest| rest.contains(':'))
    {
        let forms = "`python:FILE.py:FUNCTION` or `python:MODULE:FUNCTION`";
        return Err(("setup", format!("setup: expected {forms}, found `{}`", cut(setup))));
    }
    let mut environment = BTreeMap::new();
    for (name, value) in values("env", env)?.unwrap_or_default() {
        let wrong = |why: &str| Err(("env", format!("env: {why}")));
        if name.is_empty() || name.contains(['=', '\0']) {
            return wrong(&format!("expected the name of a variable, found `{}`", cut(&name)));
        }
        let text = match value {
            Json::String(text) if !text.contains('\0') => text,
            Json::Number(_) | Json::Bool(_) => value.to_string(),
            _ => return wrong(&format!("expected a text or a number for `{}`", cut(&name))),
        };
        environment.insert(name, text);
    }
    let stub = stub.cloned().unwrap_or_default();
    let is_word = |part: &str| {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        part.chars().all(is_letter) && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_module = |name: &&String| name.split('.').all(|part| !part.is_empty() && is_word(part));
    if let Some(name) = stub.iter().find(|name| !is_module(name)) {
        let why = format!("stub: expected the name of a module, found `{}`", cut(name));
        return Err(("stub", why));
    }
    Ok(Wiring { setup: setup.cloned(), env: environment, stub, ..Wiring::default() })
}

/// What a column gets, which must be the name of an input, or a value.
fn column(name: &str, value: &Json) -> Result<(), String> {
    match value {
        Json::String(input) if REWARD_INPUTS.contains(&&**input) => Ok(()),
        Json::String(input) => {
            let what = unknown("input", input, &REWARD_INPUTS);
            Err(format!("{what} (a text for every row is `{name}: {{value: {}}}`)", cut(input)))
        }
        Json::Object(map) => match map.keys().find(|key| *key != "value") {
            Some(key) => Err(unknown("key", key, &["value"])),
            None if map.is_empty() => Err("expected `value`, found nothing".to_owned()),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The inputs of the contract of reward functions, of which each may be a column.
pub(crate) const REWARD_INPUTS: [&str; 3] = ["prompts", "completions", "answers"];

/// The values of a key as JSON, in which they are handed over, or the key and why they cannot be.
fn values(
    key: &'static str,
    given: Option<&BTreeMap<String, serde_yaml::Value>>,
) -> Result<Option<Map<String, Json>>, (&'static str, String)> {
    let Some(given) = given else { return Ok(None) };
    let mut values = Map::new();
    for (name, value) in given {
        let value = json(value).map_err(|why| (key, format!("{key}.{}: {why}", cut(name))))?;
        values.insert(name.clone(), value);
    }
    Ok(Some(values))
}

/// A value of YAML as JSON.
fn json(value: &serde_yaml::Value) -> Result<Json, String> {
    use serde_yaml::Value as Yaml;
    Ok(match value {
        Yaml::Null => Json::Null,
        Yaml::Bool(value) => Json::Bool(*value),
        Yaml::String(text) => Json::String(text.clone()),
        Yaml::Number(number) => match serde_json::to_value(number) {
            Ok(Json::Null) | Err(_) => {
                return Err(format!("expected a finite number, found {number}"));
            }
            Ok(number) => number,
        },
        Yaml::Sequence(items) => Json::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        Yaml::Mapping(map) => {
            let mut object = Map::new();
            for (key, value) in map {
                let Yaml::String(key) = key else {
                    return Err("expected texts as keys".to_owned());
                };
                object.insert(key.clone(), json(value)?);
            }
            Json::Object(object)
        }
        Yaml::Tagged(tagged) => return Err(format!("expected no tag, found `{}`", tagged.tag)),
    })
}

impl PythonFile {
    /// What it says, for a manifest in the folder `parent`.
    fn at(self, parent: &Path) -> Python {
        let from_here = |path: &Path| absolute(&tidy(&parent.join(path)));
        let program = |path: PathBuf| {
            // A bare name is looked for on the search path, as a shell does.
            if path.components().count() > 1 { from_here(&path) } else { path }
        };
        let time = |given: Option<u64>, default| given.map_or(default, Duration::from_millis);
        let here = || vec![PathBuf::from(".")];
        let defaults = Python::default();
        Python {
            interpreter: self.interpreter.map_or_else(default_interpreter, program),
            path: self.path.unwrap_or_else(here).iter().map(|path| from_here(path)).collect(),
            arrays: self.arrays,
            timeout: time(self.timeout_ms, defaults.timeout),
            load_timeout: time(self.load_timeout_ms, defaults.load_timeout),
            memory_mb: self.memory_mb,
            compile: self.compile,
            fork: self.fork.unwrap_or(defaults.fork),
            show_output: defaults.show_output,
            imports: defaults.imports,
            nurseries: defaults.nurseries,
            folder: if parent.as_os_str().is_empty() { ".".into() } else { parent.to_owned() },
        }
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
