//! YAML files: with the files that they name in `defaults`, or as W&B writes them. JSON is YAML
//! too.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use super::layer::{self, DEEPEST, Field, How, Layer};
use super::{overrides, recognise};
use crate::report::Location;
use crate::settings::{Library, Origin};
use shakedown_core::value::error::Error;
use shakedown_core::value::yaml::{Document, Step, text};

/// More files in one chain of `defaults` are refused.
const MOST_FILES: usize = 64;

/// Reads a file, and those that it is built on.
///
/// # Errors
/// One of them cannot be read, is no YAML, or they are built on each other.
pub(super) fn read(path: &Path, format: &'static str) -> Result<Layer, Error> {
    let mut layer = Layer::new(path, format);
    read_into(&mut layer, path, "", &mut Vec::new())?;
    recognise::library(&mut layer);
    // Fields that nobody sets by hand: TRL wrote all of them.
    let is_written = |field: &Field| matches!(&*field.name, "_n_gpu" | "accelerator_config");
    layer.is_resolved |= layer.library == Some(Library::Trl) && layer.fields.iter().any(is_written);
    // Scripts that parse such a file may have arguments of their own in it.
    layer.is_open = match layer.library {
        Some(Library::Trl) => format == "YAML",
        library => library == Some(Library::NemoRl),
    };
    Ok(layer)
}

/// Reads bytes as YAML and as JSON, whatever they are.
pub(super) fn fuzz(bytes: &[u8]) {
    let path = Path::new("/nowhere/fuzz.yaml");
    for bytes in [bytes.to_vec(), plain_json(bytes.to_vec())] {
        let mut layer = Layer::new(path, "YAML");
        let read = text(bytes).and_then(|text| take(&mut layer, &text, path, "", &mut Vec::new()));
        if read.is_ok() {
            recognise::library(&mut layer);
            drop(super::settled(layer, None, &[]));
        }
    }
}

/// The name that a file has among its kind: `ppo_trainer`.
fn stem(path: &Path) -> String {
    path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned())
}

fn read_into(
    layer: &mut Layer,
    path: &Path,
    package: &str,
    chain: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    if chain.contains(&path.to_owned()) {
        let through = chain.last().map_or("itself".into(), |last| last.display().to_string());
        return Err(Error::new(format!("is built on itself, by `defaults` of {through}")).at(path));
    }
    if layer.files.len() > MOST_FILES {
        return Err(Error::new(format!("is built on more than {MOST_FILES} files")).at(path));
    }
    chain.push(path.to_owned());
    let bytes = layer::bytes(path)?;
    let bytes = if layer.format == "JSON" { plain_json(bytes) } else { bytes };
    let text = text(bytes).map_err(|error| error.at(path))?;
    take(layer, &text, path, package, chain).map_err(|error| located(error, path))?;
    chain.pop();
    Ok(())
}

/// The error with its path, unless it has one already.
fn located(error: Error, path: &Path) -> Error {
    if error.to_string().contains(&path.display().to_string()) { error } else { error.at(path) }
}

/// JSON as YAML reads it: characters beyond the first plane are written as two, of which YAML knows
/// nothing.
fn plain_json(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at + 6 <= bytes.len() {
        let is_half = bytes[at..].starts_with(b"\\ud") || bytes[at..].starts_with(b"\\uD");
        if is_half && matches!(bytes[at + 3], b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F') {
            bytes[at..at + 6].copy_from_slice(b"\\ufffd");
        }
        // An escaped backslash begins no other escape.
        at += if bytes[at..].starts_with(b"\\\\") { 2 } else { 1 };
    }
    bytes
}

/// Takes up the text of a file.
fn take(
    layer: &mut Layer,
    text: &str,
    path: &Path,
    package: &str,
    chain: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let document = Document::new(text);
    match document.read::<Json>()? {
        Json::Object(map) => take_map(layer, map, &document, path, package, chain),
        Json::Array(items) => take_overrides(layer, &items, &document, path),
        Json::Null => Err(Error::new("expected settings, found an empty file")),
        _ => Err(Error::new("expected a mapping of settings, found one value").line(1, 1)),
    }
}

/// A list of overrides, as hydra writes them beside the configuration.
fn take_overrides(
    layer: &mut Layer,
    items: &[Json],
    document: &Document,
    path: &Path,
) -> Result<(), Error> {
    layer.format = "overrides";
    layer.is_partial = true;
    for (index, item) in items.iter().enumerate() {
        let steps = [Step::Item(index)];
        let Some(word) = item.as_str() else {
            return Err(document.wrong(&steps, "expected an override, NAME=VALUE"));
        };
        let origin = Origin::Line(Location::new(path, document.line(&steps)));
        match overrides::one(word, origin) {
            Some(fields) => layer.fields.extend(fields),
            None => return Err(document.wrong(&steps, "expected an override, NAME=VALUE")),
        }
    }
    Ok(())
}

fn take_map(
    layer: &mut Layer,
    mut map: Map<String, Json>,
    document: &Document,
    path: &Path,
    package: &str,
    chain: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    if let Some(number) = of_accelerate(&map) {
        let at = Location::new(path, document.line(&[Step::Key("num_processes")]));
        layer.fields.push(processes(number, Origin::Line(at)));
        return Ok(());
    }
    let is_wandb = is_wandb(&map);
    if is_wandb {
        layer.is_resolved = true;
        map.retain(|_, entry| entry.get("value").is_some());
        map.remove("_wandb");
    }
    // Where hydra itself writes to, and how.
    map.remove("hydra");
    let defaults = if is_wandb { None } else { map.remove("defaults") };
    let (below, above) = defaults.map_or((Vec::new(), Vec::new()), |list| bases(&list, package));
    for base in &below {
        take_base(layer, base, path, chain)?;
    }
    let first = Location::new(path, 1);
    let at = |keys: &[&str]| {
        let steps: Vec<Step<'_>> = keys.iter().map(|key| Step::Key(key)).collect();
        let named: Vec<Step<'_>> = match keys.split_last() {
            Some((last, before)) => {
                before.iter().map(|key| Step::Key(key)).chain([Step::Name(last)]).collect()
            }
            None => steps,
        };
        Origin::Line(Location { line: document.line(&named), ..first.clone() })
    };
    let mut fields = layer::flatten(&map, DEEPEST, &at)?;
    if is_wandb {
        fields.iter_mut().for_each(|field| field.name = without_value(&field.name));
    }
    layer.fields.extend(fields.into_iter().map(|field| packaged(field, package)));
    for base in &above {
        take_base(layer, base, path, chain)?;
    }
    Ok(())
}

/// The processes that a configuration of accelerate's launcher starts; none where it is no such.
fn of_accelerate(map: &Map<String, Json>) -> Option<u64> {
    let marks = ["compute_environment", "distributed_type", "num_machines"];
    let is_one = marks.iter().any(|mark| map.contains_key(*mark));
    map.get("num_processes").filter(|_| is_one)?.as_u64()
}

fn packaged(field: Field, package: &str) -> Field {
    if package.is_empty() {
        field
    } else {
        Field { name: format!("{package}.{}", field.name), ..field }
    }
}

/// Whether W&B wrote it: each entry is a mapping with a `value`.
fn is_wandb(map: &Map<String, Json>) -> bool {
    let has_value = |entry: &Json| entry.as_object().is_some_and(|one| one.contains_key("value"));
    let by_version = map.contains_key("wandb_version") || map.contains_key("_wandb");
    !map.is_empty() && (map.values().all(has_value) || by_version)
}

/// `lr.value` as `lr`, and `actor.value.optim.lr` as `actor.optim.lr`.
fn without_value(name: &str) -> String {
    match name.split_once(".value") {
        Some((key, "")) => key.to_owned(),
        Some((key, rest)) if rest.starts_with('.') => format!("{key}{rest}"),
        _ => name.to_owned(),
    }
}

/// One entry of `defaults`.
#[derive(Debug, PartialEq)]
struct Base {
    /// Its path beside the file, without an ending: `actor/dp_actor`. With a slash in front of it,
    /// the path is from the folder of the first file of the chain.
    file: String,
    /// What all its names stand in.
    package: String,
}

/// What a file is built on, and what is built on it: in hydra's list `_self_` stands between.
/// Packages are inside that of the file.
fn bases(defaults: &Json, package: &str) -> (Vec<Base>, Vec<Base>) {
    let whole = |file: &str| Base { file: file.to_owned(), package: package.to_owned() };
    let items = match defaults {
        Json::String(file) => return (vec![whole(file)], Vec::new()),
        Json::Array(items) => items,
        _ => return (Vec::new(), Vec::new()),
    };
    let (mut below, mut above) = (Vec::new(), Vec::new());
    let mut is_above = false;
    for item in items {
        let base = match item {
            Json::String(name) if name == "_self_" => {
                is_above = true;
                continue;
            }
            Json::String(file) => Some(whole(file)),
            Json::Object(entry) => {
                entry.iter().next().and_then(|(group, name)| in_group(group, name, package))
            }
            _ => None,
        };
        if is_above { above.extend(base) } else { below.extend(base) }
    }
    (below, above)
}

/// `actor@actor_rollout_ref.actor: dp_actor`.
fn in_group(group: &str, name: &Json, outer: &str) -> Option<Base> {
    let group =
        group.strip_prefix("optional ").or(group.strip_prefix("override ")).unwrap_or(group);
    let (folder, package) = match group.split_once('@') {
        Some((folder, package)) => (folder, package.to_owned()),
        None => (group, group.trim_start_matches('/').replace('/', ".")),
    };
    Some(Base { file: format!("{folder}/{}", name.as_str()?), package: inside(outer, &package) })
}

/// A package inside of another one. `_global_` is inside of none, `_here_` is the other itself.
fn inside(outer: &str, package: &str) -> String {
    if let Some(rest) = package.strip_prefix("_global_") {
        return rest.trim_start_matches('.').to_owned();
    }
    let package = package.strip_prefix("_here_").unwrap_or(package);
    match (outer, package.trim_start_matches('.')) {
        ("", package) => package.to_owned(),
        (outer, "") => outer.to_owned(),
        (outer, package) => format!("{outer}.{package}"),
    }
}

fn take_base(
    layer: &mut Layer,
    base: &Base,
    path: &Path,
    chain: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let (file, from) = match base.file.strip_prefix('/') {
        Some(file) => (file, chain.first().map_or(path, PathBuf::as_path)),
        None => (&*base.file, path),
    };
    let folder = from.parent().unwrap_or(Path::new(""));
    let beside = [file.to_owned(), format!("{file}.yaml")].map(|file| folder.join(file));
    if let Some(file) = beside.iter().find(|file| file.is_file()) {
        if !layer.files.contains(file) {
            layer.files.push(file.clone());
        }
        return read_into(layer, file, &base.package, chain);
    }
    // A part of a group names others of it, and of the groups beside it.
    let in_group = from.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let in_group = in_group.map_or(String::new(), |group| format!("{group}/{file}"));
    let whole = [file, file.trim_start_matches("../"), &in_group];
    let is_verl = whole.into_iter().any(recognise::is_verl_base);
    if recognise::is_verl_trainer(file) {
        layer.library = Some(Library::Verl);
    }
    if !is_verl && !file.starts_with("hydra/") {
        layer.gaps.push(format!(
            "{} is built on `{}`, which is not beside it",
            stem(path),
            base.file
        ));
    }
    Ok(())
}

/// A dictionary that was given, as fields.
///
/// # Errors
/// It is no dictionary, or has too many fields.
pub(super) fn dictionary(value: &Json) -> Result<Layer, Error> {
    let Json::Object(map) = value else {
        return Err(Error::new("expected a dictionary of settings"));
    };
    let mut layer = Layer { format: "dictionary", is_resolved: true, ..Layer::default() };
    let mut map = map.clone();
    let is_wandb = is_wandb(&map);
    if is_wandb {
        map.retain(|_, entry| entry.get("value").is_some());
        map.remove("_wandb");
    }
    layer.fields = layer::flatten(&map, DEEPEST, &|_| Origin::Flag)?;
    if is_wandb {
        layer.fields.iter_mut().for_each(|field| field.name = without_value(&field.name));
    }
    recognise::library(&mut layer);
    Ok(layer)
}

/// A field that stands for what a launcher was told.
pub(super) fn processes(number: u64, origin: Origin) -> Field {
    let name = crate::settings::derive::PROCESSES.to_owned();
    Field { name, json: Some(Json::from(number)), origin, how: How::Set }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_taken_out_of_json_and_nothing_else() {
        for (text, plain) in [
            (r#"{"a": "\ud83d\ude00b"}"#, r#"{"a": "\ufffd\ufffdb"}"#),
            (r#"{"a": "\\ud83d"}"#, r#"{"a": "\\ud83d"}"#),
            (r#"{"a": "\u00e9"}"#, r#"{"a": "\u00e9"}"#),
            (r#"\ud8"#, r#"\ud8"#),
        ] {
            assert_eq!(plain_json(text.into()), plain.as_bytes(), "{text}");
        }
    }

    #[test]
    fn entries_of_hydras_list_are_files_in_packages() {
        let list: Json = serde_json::from_str(
            r#"["base", {"actor@a.b": "dp"}, {"/model/small": "x"}, "_self_",
                {"override hydra/launcher": "x"}]"#,
        )
        .unwrap();
        let (below, above) = bases(&list, "");
        let base = |file: &str, package: &str| Base { file: file.into(), package: package.into() };
        let expected =
            [base("base", ""), base("actor/dp", "a.b"), base("/model/small/x", "model.small")];
        assert_eq!(below, expected);
        assert_eq!(above, [base("hydra/launcher/x", "hydra.launcher")]);
        let (below, _) = bases(&list, "outer");
        let packages: Vec<&str> = below.iter().map(|base| &*base.package).collect();
        assert_eq!(packages, ["outer", "outer.a.b", "outer.model.small"]);
    }

    #[test]
    fn packages_are_inside_of_that_of_their_file() {
        for (outer, package, whole) in [
            ("", "a.b", "a.b"),
            ("x", "a", "x.a"),
            ("x", "_global_", ""),
            ("x", "_global_.a", "a"),
            ("x.y", "_here_", "x.y"),
            ("x.y", "_here_.a", "x.y.a"),
        ] {
            assert_eq!(inside(outer, package), whole, "{outer} {package}");
        }
    }
}
