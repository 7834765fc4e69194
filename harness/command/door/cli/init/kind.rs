//! Rust or Python: what a folder holds says so, or the user does.

use std::fs;
use std::path::Path;

use clap::ValueEnum;

use shakedown_core::value::error::Error;

/// The language of a training repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// A suite for `cargo test`
    Rust,
    /// Tests for pytest, or a manifest for `shakedown check`
    Python,
}

/// The files that make a folder a Python project.
const PYTHON: [&str; 4] = ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"];

/// The kind that was named, else the one that the folder shows.
///
/// # Errors
/// The folder shows none, or both.
pub(super) fn of(dir: &Path, named: Option<Kind>) -> Result<Kind, Error> {
    if let Some(kind) = named {
        return Ok(kind);
    }
    let rust = dir.join("Cargo.toml").is_file().then(|| "Cargo.toml".to_owned());
    match (rust, python(dir)) {
        (Some(_), None) => Ok(Kind::Rust),
        (None, Some(_)) => Ok(Kind::Python),
        (Some(rust), Some(python)) => Err(Error::new(format!(
            "{} has both {rust} and {python}: name one, `shakedown init rust` or \
             `shakedown init python`",
            dir.display()
        ))),
        (None, None) => Err(Error::new(format!(
            "{} has neither Cargo.toml nor {} nor a .py file: name the language, \
             `shakedown init rust` or `shakedown init python`, or the folder, `--dir DIR`",
            dir.display(),
            PYTHON.join(", ")
        ))),
    }
}

/// The file by which the folder is a Python project.
fn python(dir: &Path) -> Option<String> {
    if let Some(name) = PYTHON.iter().find(|name| dir.join(name).is_file()) {
        return Some((*name).to_owned());
    }
    let entries = fs::read_dir(dir).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".py")).min()
}
