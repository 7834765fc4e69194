//! How configurations are written: YAML, JSON, shell and Python scripts, overrides. All of them
//! become fields, and the fields settings.

mod flags;
mod interpolate;
mod launch;
mod layer;
mod others;
mod overrides;
mod python;
mod recognise;
mod shell;
mod word;
mod yaml;

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use self::interpolate::Scope;
use self::layer::{Field, How, Layer, Merged};
use super::{Library, Origin, Settings, Value, derive, fields};
use crate::report::Location;
use shakedown_core::value::error::{Error, nearest, unknown};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Yaml,
    Json,
    Shell,
    Python,
    Overrides,
}

/// Reads one configuration from all files together: what a later one sets counts. `processes` is
/// the number of the launcher's, `context` that of the tokens which the model takes, and `set` has
/// settings or fields that are given by hand. Where the library is not known, rules that need it
/// are not judged.
///
/// # Errors
/// A file cannot be read or understood, with its line; nothing there belongs to a known library; or
/// a name of `set` is not known.
pub fn read(
    paths: &[PathBuf],
    processes: Option<u64>,
    context: Option<u64>,
    set: &[(String, String)],
) -> Result<Settings, Error> {
    read_as(paths, Given::default(), processes, context, set)
}

/// What is known of a configuration before it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// The library: `verl`, or `unknown`.
    pub library: Option<&'a str>,
    /// What takes the fields: `GRPOConfig`.
    pub call: Option<&'a str>,
}

/// The same, where something is known before.
///
/// # Errors
/// Those of [`read`], or the library is none that is known.
pub fn read_as(
    paths: &[PathBuf],
    given: Given<'_>,
    processes: Option<u64>,
    context: Option<u64>,
    set: &[(String, String)],
) -> Result<Settings, Error> {
    let Some(first) = paths.first() else {
        return Err(Error::new("expected a configuration file"));
    };
    let mut whole = Layer { is_partial: true, ..Layer::default() };
    for path in paths {
        whole.take(one(path)?);
    }
    if let Some(number) = processes {
        whole.fields.push(yaml::processes(number, Origin::Flag));
    }
    if let Some(name) = given.library {
        name_library(&mut whole, name)?;
    }
    settled(called(whole, given.call), context, set).map_err(|error| error.at(first))
}

/// Takes a layer for one of the library that was named, whatever its fields say.
fn name_library(layer: &mut Layer, name: &str) -> Result<(), Error> {
    const UNKNOWN: &str = "unknown";
    let is_read = |library: &Library| fields::sources(*library).next().is_some();
    let libraries = || Library::ALL.into_iter().filter(is_read);
    let library = libraries().find(|library| library.name().eq_ignore_ascii_case(name));
    if library.is_none() && name != UNKNOWN {
        let names: Vec<&str> = libraries().map(Library::name).chain([UNKNOWN]).collect();
        return Err(Error::new(unknown("library", name, &names)));
    }
    (layer.library, layer.other, layer.is_named) = (library, None, true);
    if library.is_some() {
        recognise::library(layer);
    }
    Ok(())
}

/// A layer whose fields are known to belong to one call. A class of the user's own may be called
/// like one of a library's: then most of its fields are not known there.
fn called(mut layer: Layer, call: Option<&str>) -> Layer {
    let Some(call) = call else { return layer };
    layer.call = Some(call.to_owned());
    let calls = |library: &Library| !fields::known(*library, Some(call)).is_empty();
    let of_call = [Library::Trl, Library::OpenRlhf, Library::Verl].into_iter().find(calls);
    if layer.is_named || layer.other.is_some() {
        return layer;
    }
    let library = layer.library.or(of_call);
    if library.is_some() && library == of_call && !recognise::takes(library, call, &layer.fields) {
        (layer.library, layer.other) = (None, Some(others::OWN));
    } else {
        layer.library = library;
    }
    layer
}

/// Reads a dictionary, such as `to_dict()` of a configuration gives it. `call` is what takes its
/// items: `GRPOConfig`.
///
/// # Errors
/// It is no dictionary, or nothing there belongs to a known library.
pub fn from_json(value: &Json, call: Option<&str>) -> Result<Settings, Error> {
    let layer = called(yaml::dictionary(value)?, call);
    settled(layer, None, &[])
}

/// Reads bytes in every form that no other program parses, and forgets what it read.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    shell::fuzz(&text);
    yaml::fuzz(bytes);
    for line in text.lines() {
        drop(overrides::one(line, Origin::Flag));
    }
}

/// Reads one file by itself.
fn one(path: &Path) -> Result<Layer, Error> {
    match format(path)? {
        Format::Yaml => yaml::read(path, "YAML"),
        Format::Json => yaml::read(path, "JSON"),
        Format::Overrides => overrides_of_lines(path),
        Format::Shell => shell::read(path),
        Format::Python => python::read(path),
    }
}

/// How a file is written: its ending says it, else its beginning.
fn format(path: &Path) -> Result<Format, Error> {
    let ending = path.extension().map_or(String::new(), |end| end.to_string_lossy().to_lowercase());
    match &*ending {
        "yaml" | "yml" => return Ok(Format::Yaml),
        "json" => return Ok(Format::Json),
        "py" => return Ok(Format::Python),
        "sh" | "bash" | "zsh" | "slurm" | "sbatch" | "env" => return Ok(Format::Shell),
        _ => {}
    }
    let bytes = layer::bytes(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let first = text.lines().next().unwrap_or("");
    if first.starts_with("#!") {
        return Ok(if first.contains("python") { Format::Python } else { Format::Shell });
    }
    if text.trim_start().starts_with('{') {
        return Ok(Format::Json);
    }
    let mut lines =
        text.lines().map(str::trim).filter(|one| !one.is_empty() && !one.starts_with('#'));
    let is_override =
        |line: &str| overrides::name(line).is_some_and(|(name, ..)| name.contains('.'));
    if lines.clone().count() > 0 && lines.clone().all(is_override) {
        return Ok(Format::Overrides);
    }
    let is_key = |line: &str| {
        let key =
            line.split_once(':').map(|(key, rest)| (key, rest.is_empty() || rest.starts_with(' ')));
        key.is_some_and(|(key, ends)| ends && !key.contains([' ', '=', '$']))
    };
    let is_item = |line: &str| line.starts_with("- ") || line == "---";
    match lines.next() {
        Some(line) if is_key(line) || is_item(line) => Ok(Format::Yaml),
        Some(line) if line.starts_with("import ") || line.starts_with("from ") => {
            Ok(Format::Python)
        }
        _ => Ok(Format::Shell),
    }
}

/// Overrides, one a line.
fn overrides_of_lines(path: &Path) -> Result<Layer, Error> {
    let bytes = layer::bytes(path)?;
    let mut layer = Layer { is_partial: true, ..Layer::new(path, "overrides") };
    let first = Location::new(path, 1);
    for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
        let at = Location { line: index + 1, ..first.clone() };
        layer.fields.extend(overrides::one(line.trim(), Origin::Line(at)).into_iter().flatten());
    }
    recognise::library(&mut layer);
    Ok(layer)
}

/// The settings that all layers come to.
fn settled(
    mut layer: Layer,
    context: Option<u64>,
    set: &[(String, String)],
) -> Result<Settings, Error> {
    if layer.other.is_none() && !layer.is_named {
        layer.other = recognise::fork(layer.library, layer.call.as_deref(), &layer.fields);
    }
    let Layer { other, call, mut fields, mut gaps, .. } = layer;
    let library = match other {
        Some(other) => other.fork_of,
        None => layer.library,
    };
    if layer.is_partial {
        gaps.push("the configuration that they are added to is not given".to_owned());
    }
    let mut warnings = layer.warnings;
    match (library, other) {
        (Some(_), Some(fork)) => gaps.push(format!("{} has defaults of its own", fork.name)),
        (None, None) if layer.is_named || recognise::is_training(&fields) => {
            warnings.push("the library is not known: --library names it".to_owned());
        }
        (None, None) => {
            let message = "expected settings of TRL, verl, OpenRLHF, NeMo-RL or slime, found none";
            return Err(Error::new(message));
        }
        _ => {}
    }
    warnings.extend(gaps.iter().map(|gap| format!("settings that are not set are unknown: {gap}")));
    let mut settings = Settings {
        library,
        other: other.map(|other| other.name.to_owned()),
        call: call.filter(|_| library.is_some()),
        is_complete: gaps.is_empty() && library.is_some(),
        is_open: layer.is_open,
        is_resolved: layer.is_resolved,
        is_supervised: layer.is_supervised,
        files: layer.files,
        format: layer.format.to_owned(),
        warnings,
        ..Settings::default()
    };
    let mut set_later = Vec::new();
    for by_hand in by_hand(&settings, &fields, set)? {
        match by_hand {
            ByHand::Field(field) => fields.push(field),
            ByHand::Setting(id, json) => set_later.push((id, json)),
        }
    }
    put(&mut settings, fields);
    settings.is_supervised |=
        library.is_some_and(|library| recognise::is_supervised(library, &settings.fields));
    derive::fill(&mut settings);
    settings.fields.remove(derive::PROCESSES);
    if let Some(context) = context {
        settings.set("length.context", context, Origin::Flag);
    }
    for (id, json) in set_later {
        settings.set(&id, json, Origin::Flag);
    }
    Ok(settings)
}

/// Puts the fields into the settings, references resolved.
fn put(settings: &mut Settings, fields: Vec<Field>) {
    let merged = Merged::new(fields).fields;
    let call = settings.call.clone();
    let mut scope = Scope::new(&merged, settings.library, call.as_deref(), settings.is_complete);
    for (name, field) in &merged {
        if field.how == How::Added {
            settings.added.insert(name.clone());
        }
        let resolved = field.json.as_ref().and_then(|json| scope.resolved(name, json));
        let origin = field.origin.clone();
        match resolved {
            Some(json) => drop(settings.fields.insert(name.clone(), Value { json, origin })),
            None => drop(settings.unread.insert(name.clone(), origin)),
        }
    }
}

/// What was given by hand.
enum ByHand {
    Field(Field),
    /// By its id.
    Setting(String, Json),
}

fn by_hand(
    settings: &Settings,
    fields: &[Field],
    set: &[(String, String)],
) -> Result<Vec<ByHand>, Error> {
    let of_call = |library| fields::known(library, settings.call.as_deref());
    let known = settings.library.map_or(&[][..], of_call);
    let one = |(name, text): &(String, String)| {
        let json = overrides::value(text);
        if fields::ids().any(|id| id == name) {
            return Ok(ByHand::Setting(name.clone(), json));
        }
        let is_field = known.is_empty()
            || known.contains(&&**name)
            || fields.iter().any(|field| field.name == *name);
        if !is_field {
            let near = nearest(name, fields::ids().chain(known.iter().copied()));
            return Err(Error::new(format!("unknown setting `{name}`{near}")));
        }
        let (name, json) = (name.clone(), Some(json));
        Ok(ByHand::Field(Field { name, json, origin: Origin::Flag, how: How::Set }))
    };
    set.iter().map(one).collect()
}
