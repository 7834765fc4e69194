//! A Python repository: tests for pytest where it has that, else a manifest, adapters, a folder for
//! regressions and a workflow.

mod component;
mod pytest;
mod scan;
mod trial;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::File;
use super::guess::{Names, names_of, required_inputs};
use super::template::{fill, indent};
use super::workflow;
use super::{MANIFEST_FILE, Plan, repository};
use component::Component;
use scan::{Function, Lines, Scan};
use shakedown_contracts as contracts;
use shakedown_contracts::REGISTRY;
use shakedown_core::value::error::Error;
use shakedown_core::value::yaml;
use shakedown_engine::files::manifest::Manifest;
use shakedown_engine::files::schema;

const MANIFEST: &str = include_str!("shakedown.yaml");
const ADAPTERS: &str = include_str!("adapters.py");
const EXAMPLE: &str = include_str!("example.py");

const ADAPTERS_FILE: &str = "shakedown_adapters.py";

/// What `init` writes into the folder. Functions are tried for a time at the most.
///
/// # Errors
/// What it would write is refused by the reader of manifests: a bug of `init`.
pub(super) fn plan(
    dir: &Path,
    as_manifest: bool,
    add: Option<&str>,
    time: Duration,
) -> Result<Plan, Error> {
    let (scan, trouble) = match scan::of(dir) {
        Ok(scan) => (scan, None),
        Err(why) if add.is_some() => return Err(Error::new(why)),
        Err(why) => (Scan::default(), Some(why)),
    };
    // What is there already is gone on with.
    let is_manifest = as_manifest || !scan.pytest || dir.join(MANIFEST_FILE).is_file();
    match add {
        Some(target) if is_manifest => return added(dir, &pytest::named(&scan, target)?),
        Some(target) => return pytest::add(dir, &scan, target, time),
        None if !is_manifest => {
            return Ok(pytest::plan(dir, &scan, trouble.as_deref(), time));
        }
        None => {}
    }
    let mut found = in_order(scan.functions.iter().filter_map(component::of).collect());
    let can_be_written = found.first().is_some_and(|component| component.target.is_some());
    let filled = if can_be_written { found.remove(0) } else { component::example() };

    let mut said = vec![format!("Python repository in `{}`.", dir.display())];
    said.extend(trouble.map(|why| format!("Its files were not read: {why}.")));
    said.extend(scan.unread.iter().map(|why| format!("Not read: {why}.")));
    said.push(match &filled.at {
        Some(at) => format!("Filled in: `{}` ({at}) as {}.", filled.name, filled.contract),
        None => {
            let why = "No function looks like a component that can be filled in";
            format!("{why}: an example is, in {ADAPTERS_FILE}.")
        }
    });
    said.extend(found.iter().map(|other| format!("Also found: {}.", other.looks())));
    said.extend(between_lines(&scan, found.iter().chain([&filled])));

    let manifest = manifest(dir, &filled, &found)?;
    let (root, inside) = repository(dir);
    let mut files = vec![
        File::new(MANIFEST_FILE, manifest, filled.yaml()),
        File::new(ADAPTERS_FILE, adapters(&filled), by_hand_adapter(&filled)),
    ];
    files.extend(workflow::regressions(filled.contract));
    files.push(workflow::python(&root, &inside, dir, &filled.name));
    Ok(Plan { found: said, files, steps: steps(&filled) })
}

/// The surest first, which need no adapter; then in the order of the pipeline, and of the files. Of
/// a class only the first for each contract.
fn in_order(mut found: Vec<Component>) -> Vec<Component> {
    let mut seen = HashSet::new();
    found.retain(|one| {
        let class = one.code.as_ref().map(|code| (code.module.clone(), code.import.clone()));
        seen.insert((class, one.contract))
    });
    found.sort_by_key(|component| {
        let private = component.name.starts_with('_');
        let stage = contracts::IDS.iter().position(|id| *id == component.contract);
        (component.target.is_none(), component.adapter.is_some(), private, stage)
    });
    found
}

/// How many places between other lines are listed.
const LISTED: usize = 12;

/// What functions compute between other lines, and what to do about it: one sentence each, but for
/// those that are components as a whole.
fn between_lines<'a>(scan: &Scan, found: impl Iterator<Item = &'a Component>) -> Vec<String> {
    let whole: HashSet<(&str, &str)> =
        found.map(|component| (&*component.name, component.contract)).collect();
    let is_inside = |one: &&Lines| !whole.contains(&(&*one.path, &*one.contract));
    let inside: Vec<&Lines> = scan.lines.iter().filter(is_inside).collect();
    let mut said: Vec<String> = inside
        .iter()
        .take(LISTED)
        .filter_map(|Lines { file, line, path, contract }| {
            let (name, inputs) =
                (contract.replace('-', "_"), required_inputs(contract)?.join(", "));
            Some(format!(
                "Between other lines: {contract} ({file}:{line}, in `{path}`). Move it into a \
                 function `{name}({inputs})`, then: shakedown init --add {file}:{name}"
            ))
        })
        .collect();
    if inside.len() > LISTED {
        said.push(format!("Between other lines: {} more like these.", inside.len() - LISTED));
    }
    said
}

/// One component more in the manifest, which is there, or is written.
///
/// # Errors
/// It cannot be called as it is, or the manifest cannot be read with it.
fn added(dir: &Path, component: &Component) -> Result<Plan, Error> {
    let path = dir.join(MANIFEST_FILE);
    let mut component = component.clone();
    trial::accepted(&mut component);
    if component.target.is_none() {
        let lacks = component.code.as_ref().and_then(|code| code.lacks.clone());
        let why = lacks.unwrap_or_else(|| "no import or call by name reaches it".to_owned());
        return Err(Error::new(format!("{}, but: {why}", component.looks())));
    }
    let mut files = Vec::new();
    let yaml = component.yaml();
    match fs::read_to_string(&path) {
        Ok(there) if there.contains(&*indent(&yaml, 2)) => {
            files.push(File::new(MANIFEST_FILE, there, yaml));
        }
        Ok(there) => {
            let text = format!("{}\n  {}\n", there.trim_end(), indent(&yaml, 2));
            Manifest::parse(&REGISTRY, &path, &text).map_err(|error| error.at(&path))?;
            let change = format!("the component `{}`", component.name);
            files.push(File { change, ..File::new(MANIFEST_FILE, text, yaml) });
        }
        Err(_) => files.push(File::new(MANIFEST_FILE, manifest(dir, &component, &[])?, yaml)),
    }
    if let Some(adapter) = &component.adapter {
        let there = fs::read_to_string(dir.join(ADAPTERS_FILE)).ok();
        let text = match &there {
            Some(there) if there.contains(adapter.trim_end()) => there.clone(),
            Some(there) => format!("{}\n\n\n{adapter}", there.trim_end()),
            None => adapters(&component),
        };
        let change =
            there.map_or_else(String::new, |_| format!("an adapter of `{}`", component.name));
        files.push(File { change, ..File::new(ADAPTERS_FILE, text, adapter.clone()) });
    }
    Ok(Plan {
        found: vec![format!("Added: {}.", component.looks())],
        files,
        steps: steps(&component),
    })
}

/// The manifest; the numbers found as defaults are left out where the contract refuses them.
fn manifest(dir: &Path, filled: &Component, others: &[Component]) -> Result<String, Error> {
    let path = dir.join(MANIFEST_FILE);
    let text = manifest_text(filled, others);
    if Manifest::parse(&REGISTRY, &path, &text).is_ok() {
        return Ok(text);
    }
    let bare = Component { options: Vec::new(), ..filled.clone() };
    let text = manifest_text(&bare, others);
    Manifest::parse(&REGISTRY, &path, &text).map_err(|error| error.at(&path))?;
    Ok(text)
}

fn manifest_text(filled: &Component, others: &[Component]) -> String {
    let names = names_of(filled.contract);
    let Names { inputs, options } = names.expect("the contract was found by its name");
    let comment = |other: &Component| format!("  # also found: {}\n", other.looks());
    let others: String = others.iter().map(comment).collect();
    fill(
        MANIFEST,
        &[
            ("SCHEMA", &schema::address()),
            ("INPUTS", &inputs.join(", ")),
            ("OPTION_NAMES", &wrapped(&options)),
            ("PATH", &yaml::inline(&filled.path)),
            ("ARRAYS", filled.arrays),
            ("COMPONENT", &indent(&filled.yaml(), 2)),
            ("OTHERS", others.trim_end()),
        ],
    )
}

/// The names in lines of a comment.
fn wrapped(names: &[&str]) -> String {
    let mut lines = vec![String::new()];
    for name in names {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && line.len() + name.len() > 80 {
            line.push(',');
            lines.push((*name).to_owned());
        } else {
            let separator = if line.is_empty() { "" } else { ", " };
            line.push_str(separator);
            line.push_str(name);
        }
    }
    lines.join("\n  #   ")
}

fn adapters(filled: &Component) -> String {
    fill(ADAPTERS, &[("ADAPTER", filled.adapter.as_deref().unwrap_or(EXAMPLE).trim_end())])
}

fn by_hand_adapter(filled: &Component) -> String {
    match &filled.adapter {
        Some(adapter) => adapter.clone(),
        None => "nothing: no adapter is needed".to_owned(),
    }
}

fn steps(filled: &Component) -> Vec<String> {
    let mut steps = vec![
        format!("shakedown check {MANIFEST_FILE}"),
        format!(
            "Compare `options` with what your function does: shakedown list {}",
            filled.contract
        ),
    ];
    if filled.at.is_none() {
        steps.insert(0, format!("Replace the example in {MANIFEST_FILE} by a function of yours"));
    }
    steps.push("Keep what was found and fixed: shakedown adopt FILE --why \"…\"".to_owned());
    steps.push(format!(
        "Look through {}, commit what was written, and run it once: gh workflow run shakedown",
        workflow::FILE
    ));
    steps
}

/// The folders in front of `sys.path`: the manifest's own, then that of the function's module.
fn search_path(function: &Function) -> Vec<PathBuf> {
    let mut path = vec![PathBuf::from(".")];
    path.extend((function.root != ".").then(|| PathBuf::from(&function.root)));
    path
}
