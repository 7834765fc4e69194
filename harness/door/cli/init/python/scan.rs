//! The functions of a Python repository, as Python's own parser sees them. Nothing is imported.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::host::process::default_interpreter;

/// What the files of a repository define.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scan {
    pub(super) functions: Vec<Function>,
    /// Files that Python does not understand, each with the reason.
    pub(super) unread: Vec<String>,
}

/// One function at the top of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Function {
    pub(super) name: String,
    /// Its file and line.
    pub(super) file: String,
    pub(super) line: u64,
    /// What to import; none where no import statement can name the file.
    pub(super) module: Option<String>,
    /// The folder from which `module` is imported.
    pub(super) root: String,
    /// Whether the file is in a package, whose imports may be relative.
    pub(super) package: bool,
    pub(super) parameters: Vec<Parameter>,
    /// Whether it takes `**kwargs`.
    pub(super) others: bool,
    /// Whether all parameters can be given by name.
    pub(super) by_keyword: bool,
    /// Whether it is a coroutine.
    pub(super) waits: bool,
    /// Whether it looks for `"content"`, as in a list of messages.
    pub(super) chat: bool,
    /// The library of arrays that its file imports.
    pub(super) arrays: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) default: Option<serde_json::Number>,
}

const SCAN: &str = include_str!("scan.py");

/// Scans the folder, or says why it could not.
pub(super) fn of(dir: &Path) -> Result<Scan, String> {
    let interpreter = default_interpreter();
    let name = interpreter.display();
    // Isolated: a file `json.py` of the repository must not be imported in the place of Python's.
    let output = Command::new(&interpreter)
        .args(["-I", "-c", SCAN])
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start the interpreter {name}: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().last().unwrap_or("").to_owned();
        return Err(format!("{name} ended with {}: {last}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{name} answered {error}"))
}
